// What became of a job over time: its states, every change of what it held, and how attempts ended.

import { lines } from "../chart.js";
import { h, s } from "../dom.js";
import { coreWords, cores, exact, memory, moment, number, ranges, span } from "../format.js";
import { store } from "../store.js";

/** More steps than anybody reads. */
const LISTED = 60;
/** Seconds within which they are told. */
const SHORT = 1800;
const VERBS = { waiting: "waits", held: "is held", starting: "starts", running: "runs", stopping: "is stopping", suspended: "is suspended" };

export function timeline({ job, runs }, stretches) {
  const from = job.submitted;
  const to = job.ended ?? store.now();
  const pieces = stretches.map((each, index) => piece(each, stretches[index - 1], stretches[index + 1], runs, to));
  const whole = Math.max(1e-6, to - from);
  const share = (at) => (100 * Math.max(0, at - from)) / whole;
  const listed = pieces.slice(-LISTED);
  return [
    s("svg", { class: "timeline", width: "100%", height: 30, role: "img", "aria-label": `Timeline: ${pieces.slice(-8).map(worded).join("; ")}` },
      pieces.map((each) => s("rect", { class: each.kind, x: `${share(each.from)}%`, width: `${Math.max(0.4, share(each.to) - share(each.from))}%`, y: 2, height: 26, rx: each.resized ? 0 : 3 },
        s("title", { text: worded(each) })))),
    h("div", { class: "ends quiet", "aria-hidden": "true" }, h("span", { title: exact(from), text: moment(from) }), h("span", { text: span(to - from) }), h("span", { title: exact(to), text: job.ended ? moment(to) : "now" })),
    grants(stretches, from, to),
    pieces.length > listed.length ? h("p", { class: "quiet", text: `The latest ${LISTED} of ${pieces.length} steps:` }) : null,
    h("ol", { class: "steps", tabindex: 0, "aria-label": "Steps", "data-key": "steps" }, listed.map((each) => h("li", {}, h("i", { class: `mark ${each.kind}`, "aria-hidden": "true" }),
      h("span", { class: "at", title: exact(each.from), text: moment(each.from, whole < SHORT) }), h("span", { class: "what" }, each.text, each.more ? h("span", { class: "quiet", text: ` ${each.more}` }) : null), h("span", { class: "long", text: span(each.to - each.from) })))),
  ];
}

const worded = (each) => `${each.text} ${each.more} for ${span(each.to - each.from)}`;

function piece(now, before, after, runs, to) {
  const run = runs.find((each) => each.number === now.attempt);
  const last = after?.attempt !== now.attempt || !after.places.length;
  const outcome = now.places.length && last && run?.ended ? run.outcome : "";
  const failed = run?.ended && run.outcome && !/^(exit code 0|stopped)\b/.test(run.outcome);
  const resized = now.places.length > 0 && before?.attempt === now.attempt && before.places.length > 0;
  const changed = resized ? difference(before.places, now.places) : "";
  const again = now.attempt > 1 && !resized && now.places.length ? `, attempt ${now.attempt},` : "";
  const held = resized ? (changed && `now with ${changed}`) : now.places.map(placed).join(" + ");
  const called = now.state === "starting" && !now.places.length;
  return {
    kind: failed && now.state === "running" ? "failed" : called ? "waiting" : now.state, from: now.since, to: now.until ?? to, resized: resized && before.state === now.state,
    text: called ? "waits for others to leave its GPUs" : (VERBS[now.state] ?? now.state) + again, more: [held, outcome].filter(Boolean).join(" — "),
  };
}

const placed = (on) => `on ${on.node}${on.devices.length ? ` GPU ${ranges(on.devices)}` : ""}, ${coreWords(on.cpu)}, ${memory(on.memory)}`;

const sums = (places) => ({
  gpus: places.reduce((sum, on) => sum + (on.devices.length * on.share) / 1000, 0),
  cpu: places.reduce((sum, on) => sum + on.cpu, 0),
  memory: places.reduce((sum, on) => sum + on.memory, 0),
});

/** What is other than before, in words. */
function difference(before, now) {
  const [was, is] = [sums(before), sums(now)];
  const where = (places) => places.map((on) => `${on.node} ${ranges(on.devices)}`).join(" + ");
  const said = [];
  if (where(before) !== where(now) || was.gpus !== is.gpus) said.push(`GPU ${where(now)} (was ${where(before)})`);
  if (was.cpu !== is.cpu) said.push(`${coreWords(is.cpu)} (was ${cores(was.cpu)})`);
  if (was.memory !== is.memory) said.push(`${memory(is.memory)} (was ${memory(was.memory)})`);
  return said.join(", ");
}

/** Lines for what was granted in different amounts; what stayed the same needs none. */
function grants(stretches, from, to) {
  const kinds = [["gpus", "GPUs granted", 2, (value) => value], ["cpu", "Cores granted", 5, (value) => value / 1000], ["memory", "GiB granted", 3, (value) => value / 1024]];
  const charts = kinds.map(([key, label, hue, size]) => {
    const values = stretches.map((each) => (each.places.length ? size(sums(each.places)[key]) : null));
    if (new Set(values.filter((each) => each !== null)).size < 2) return null;
    const points = stretches.flatMap((each, index) => [[each.since, values[index]], [each.until ?? to, values[index]]]);
    return lines({ label, from, to, height: 92, y: number, series: [{ name: "now", hue, area: true, stepped: true, points }] });
  }).filter(Boolean);
  return charts.length ? h("div", { class: "grants" }, charts) : null;
}
