// Numbers and moments as people read them. One place, so that all pages say them alike.

const NARROW = "\u202f";

/** Seconds as `3 h 12 min`. */
export function span(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole}${NARROW}s`;
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([size]) => whole >= size);
  const [size, unit] = parts[first];
  const head = `${Math.floor(whole / size)}${NARROW}${unit}`;
  const [small, next] = parts[first + 1];
  const rest = Math.floor((whole % size) / small);
  return rest && !(first === 2 && whole >= 600) ? `${head} ${rest}${NARROW}${next}` : head;
}

/** A range of seconds from now as `5 to 20 min`, with its middle where that is all there is room for. */
export function range({ low, middle, high }) {
  if (middle === null) return "cannot be told";
  if (high !== null && high < 1) return "any moment";
  return `in ${span(low)} to ${high === null ? "who knows" : span(high)}`;
}

/** Thousandths of cores as cores. */
export const cores = (thousandths) => number(thousandths / 1000);

export const coreWords = (thousandths) => `${cores(thousandths)} ${thousandths === 1000 ? "core" : "cores"}`;

/** MiB as GiB or TiB. */
export function memory(mib) {
  if (!Number.isFinite(mib)) return "–";
  if (mib < 1024) return `${Math.round(mib)}${NARROW}MiB`;
  const gib = mib / 1024;
  return gib < 4096 ? `${number(gib)}${NARROW}GiB` : `${number(gib / 1024)}${NARROW}TiB`;
}

/** Up to three digits that matter. */
export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return Number(value.toFixed(digits)).toLocaleString("en");
}

export const count = (value) => Math.round(value).toLocaleString("en");

export const percent = (part, whole) => (whole ? `${Math.round((100 * part) / whole)}${NARROW}%` : "–");

/** `14:03`, with the day where it is not today, and with seconds where they matter. */
export function moment(wall, seconds = false) {
  if (!wall) return "–";
  const date = new Date(wall * 1000);
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false, ...(seconds ? { second: "2-digit" } : {}) });
  if (date.toDateString() === new Date().toDateString()) return time;
  return `${date.toLocaleDateString([], { day: "numeric", month: "short" })} ${time}`;
}

export const exact = (wall) => (wall ? new Date(wall * 1000).toLocaleString() : "");

/** `1 job`, `2 jobs`. */
export const counted = (many, word) => `${count(many)} ${word}${many === 1 ? "" : "s"}`;

/** GPU numbers in a row as `0–3, 6`. */
export function ranges(numbers) {
  const out = [];
  for (const each of [...numbers].sort((a, b) => a - b)) {
    const last = out.at(-1);
    if (last && last[1] === each - 1) last[1] = each;
    else out.push([each, each]);
  }
  return out.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(", ");
}

/** A job's number as lists have it: `7`, or `12.3` for a member of an array. */
export const label = ({ id, array, index }) => (array === undefined || array === null ? `${id}` : `${array}.${index}`);

/** The same where only numbers are told, and beside them what members of arrays are called. */
export const called = (id, labels) => labels[id] ?? `${id}`;

/** A sentence as it begins. */
export const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);
