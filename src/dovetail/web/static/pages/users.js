// Who had how much.

import { get } from "../api.js";
import { h, refill, throttled } from "../dom.js";
import { count, number, percent } from "../format.js";
import { choice, empty, heading, person, table } from "../parts.js";
import { store } from "../store.js";

const DAY = 86400;

export async function show(root, signal) {
  let days = 7;
  const { quotas } = await get("policy");
  const body = h("div", { class: "card flush" });
  const draw = async () => {
    const rows = await get("usage", { since: days ? store.now() - days * DAY : 0 });
    if (!signal.aborted) refill(body, rows.length ? shares(rows, quotas) : empty("Nobody used anything yet."));
  };
  root.append(heading("Users", choice("Since", [[1, "A day"], [7, "A week"], [30, "A month"], [0, "Always"]], days, (value) => { days = value; draw(); })), body, groups(quotas) ?? "");
  await draw();
  const later = throttled(3000, draw);
  store.on(["jobs", "sample"], later, signal);
  signal.addEventListener("abort", later.cancel);
}

/** What a user may hold at one time: their own quota, or everybody's. */
function limit(quotas, owner) {
  const own = quotas.find(({ account }) => account === owner) ?? quotas.find(({ account }) => account === "*");
  return own ? allowed(own) : "–";
}

function allowed({ gpus, cpu, memory }) {
  const said = [[gpus, "GPUs"], [cpu, "cores"], [memory, "GiB"]].filter(([amount]) => amount !== null).map(([amount, unit]) => `${number(amount)} ${unit}`);
  return said.join(", ") || "–";
}

/** Groups hold their quotas together. */
function groups(quotas) {
  const named = quotas.filter(({ account }) => account.startsWith("group:"));
  return named.length ? h("p", { class: "quiet" }, "Together: ", named.map((quota) => `group ${quota.account.slice(6)} ${allowed(quota)}`).join("; ")) : null;
}

function shares(rows, quotas) {
  const all = rows.reduce((sum, row) => sum + row.gpu_hours, 0);
  const most = Math.max(1e-9, ...rows.map((row) => row.gpu_hours));
  const held = new Map();
  for (const job of store.jobs.values()) for (const [, devices, , , share] of job.places) held.set(job.owner, (held.get(job.owner) ?? 0) + (devices.length * share) / 1000);
  const bar = (row) => h("span", { class: "inbar", "aria-hidden": "true" }, h("i", { class: `hue-${store.hue(row.owner)}`, style: { width: `${(100 * row.gpu_hours) / most}%` } }));
  const numbers = ["GPU hours", "Share", "GPUs now", ...(quotas.length ? ["Quota"] : []), "Running", "Waiting", "Done", "Failed", "CPU hours"];
  return table("Users", [["User"], ...numbers.map((title) => [title, "num"])], [...rows].sort((a, b) => b.gpu_hours - a.gpu_hours).map((row) => [
    person(row.owner), [bar(row), number(row.gpu_hours)], all ? percent(row.gpu_hours, all) : "–", number(held.get(row.owner) ?? 0), ...(quotas.length ? [limit(quotas, row.owner)] : []),
    count(row.running), count(row.waiting), count(row.done), count(row.failed), number(row.cpu_hours)]));
}
