// What would have been with another policy, more GPUs or quotas: a form, and its answer as plots.

import { answers, get, post } from "../api.js";
import { lines, shifts } from "../chart.js";
import { h } from "../dom.js";
import { count, number, span } from "../format.js";
import { choice, empty, heading, notify, tile } from "../parts.js";
import { store } from "../store.js";

const DAY = 86400;

export async function show(root, signal, suggested) {
  root.append(heading("What if"), h("p", { class: "lead", text: "Replays the jobs this controller has seen, once as things are and once as you ask. Nothing that runs is touched." }));
  if (!(await answers("what-if"))) { root.append(empty("This controller does not answer what-if questions yet.")); return; }
  const rules = await get("policy");
  const result = h("div", { class: "result", "aria-live": "polite" });
  root.append(form(rules, suggested, result, signal), result);
}

function form(rules, suggested, result, signal) {
  let days = 7;
  const policy = h("input", { id: "policy", list: "policies", placeholder: rules.policy, value: suggested ?? "", autocomplete: "off", spellcheck: "false" });
  const gpus = h("input", { id: "gpus", type: "number", min: 1, max: 100000, placeholder: store.nodes.reduce((sum, node) => sum + node.gpus, 0) });
  const speed = h("input", { id: "speed", type: "number", min: 0.1, max: 100, step: "any", placeholder: 1 });
  const quotas = h("textarea", { id: "quotas", rows: 2, placeholder: "alice = 4", spellcheck: "false" });
  const button = h("button", { class: "primary", text: "Replay" });
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    result.replaceChildren(h("p", { class: "quiet", role: "status", text: "Replaying…" }));
    try {
      const question = { policy: policy.value.trim(), gpus: gpus.value ? Number(gpus.value) : null, quotas: parsed(quotas.value), speed: speed.value ? Number(speed.value) : 1, since: days ? store.now() - days * DAY : 0 };
      const answer = await post("what-if", question);
      if (!signal.aborted) result.replaceChildren(...told(answer));
    } catch (error) { result.replaceChildren(); notify(error.message); }
    button.disabled = false;
  };
  const field = (label, input, hint) => h("div", { class: "field" }, h("label", { for: input.id, text: label }), input, h("span", { class: "quiet", text: hint }));
  return h("form", { class: "card question", onsubmit: submit },
    h("datalist", { id: "policies" }, rules.ways.map((way) => h("option", { value: way.name }, way.about))),
    field("Policy", policy, "such as srtf or fifo:backfill=easy; empty: as it is"),
    field("GPUs", gpus, "in all; empty: as many as there are"),
    field("Speed of GPUs", speed, "of another type: 2 is twice as fast as now"),
    field("Quotas", quotas, "GPUs by user or group, one a line"),
    h("div", { class: "field" }, h("span", { class: "label", text: "Jobs of" }), choice("Jobs of", [[1, "a day"], [7, "a week"], [30, "a month"], [0, "always"]], days, (value) => { days = value; })),
    button);
}

function parsed(text) {
  const found = {};
  for (const line of text.split("\n").filter((each) => each.trim())) {
    const [, name, gpus] = /^\s*(.+?)\s*[=:]\s*([\d.]+)\s*$/.exec(line) ?? [];
    if (!name) throw new Error(`Quotas: write name = GPUs, not “${line.trim()}”.`);
    found[name] = Number(gpus);
  }
  return found;
}

function told({ before, after, begins, step, sooner, later, same, users, jobs, notices }) {
  const change = (was, is) => {
    const parts = was ? Math.round((100 * (is - was)) / was) : 0;
    return `${parts ? `${parts > 0 ? "+" : "−"}${Math.abs(parts)} %, ` : ""}was `;
  };
  const figure = (name, key, word) => tile(name, word(after[key]), change(before[key], after[key]) + word(before[key]));
  const share = (value) => `${Math.round(100 * value)} %`;
  const all = Math.max(1, sooner + later + same);
  const over = (key) => (outcome, hue, dashed) => ({ name: outcome.label, hue, dashed, stepped: true, points: outcome[key].map((value, index) => [begins + index * step, value]) });
  const spread = (outcome, hue, dashed) => ({ name: outcome.label, hue, dashed, points: outcome.waits.map((value, index) => [index, value]) });
  return [
    h("h2", { text: `${after.label}, instead of ${before.label}` }),
    h("div", { class: "tiles" }, figure("Mean completion time", "mean_jct", span), figure("Mean wait", "mean_wait", span), tile("GPU use", share(after.utilisation), `was ${share(before.utilisation)}`), tile("Preemptions", count(after.preemptions), `was ${count(before.preemptions)}`)),
    h("div", { class: "card" }, h("div", { class: "split", role: "img", "aria-label": `${sooner} jobs end sooner, ${later} later, ${same} about the same` },
      [["good", sooner], ["same", same], ["bad", later]].map(([kind, many]) => (many ? h("i", { class: kind, style: { width: `${(100 * many) / all}%` } }) : null))),
    h("p", { class: "row spread" }, h("span", {}, h("b", { class: "good", text: count(sooner) }), " jobs end sooner"), h("span", {}, h("b", { text: count(same) }), " about the same"), h("span", {}, h("b", { class: "bad", text: count(later) }), " later"))),
    h("div", { class: "charts" },
      card(lines({ label: "Wait by share of jobs", x: (at) => `${Math.round(at)} %`, xTicks: [0, 25, 50, 75, 100], y: span, clock: true, series: [spread(before, 6, true), spread(after, 2)] })),
      card(lines({ label: "GPUs in use", y: number, top: Math.max(before.gpus, after.gpus), series: [over("busy")(before, 6, true), over("busy")(after, 2)] })),
      card(lines({ label: "Jobs waiting", y: count, top: 4, series: [over("queue")(before, 6, true), over("queue")(after, 1)] }))),
    users.length ? h("section", { class: "card" }, h("h3", { text: "Users: mean completion time" }), shifts(users.slice(0, 30).map((row) => ({ ...row, name: `${row.name} (${count(row.jobs)})` })), span)) : null,
    jobs.length ? h("section", { class: "card" }, h("h3", { text: "Jobs that change most" }), shifts(jobs.slice(0, 20), span)) : null,
    notices.length ? h("ul", { class: "notes quiet" }, notices.map((text) => h("li", { text }))) : null,
  ].filter(Boolean);
}

const card = (chart) => h("div", { class: "card" }, chart);
