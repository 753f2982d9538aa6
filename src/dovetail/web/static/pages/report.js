// The page for the weekly meeting: use, waits, wasted GPU-hours by cause, and what waited longest.

import { get } from "../api.js";
import { bars, lines } from "../chart.js";
import { h } from "../dom.js";
import { called, count, moment, number, percent, span } from "../format.js";
import { choice, heading, person, table, tile } from "../parts.js";
import { store } from "../store.js";

const DAY = 86400;
const MOST_USERS = 20;

export async function show(root, signal) {
  let days = 7;
  const body = h("div", { class: "page" });
  const load = async () => {
    body.replaceChildren(h("p", { class: "quiet", role: "status", text: "Counting…" }));
    const asked = days;
    const told = await get("review", { since: store.now() - days * DAY }, { signal });
    if (!signal.aborted && asked === days) body.replaceChildren(...drawn(told));
  };
  root.append(heading("Report", choice("Since", [[1, "A day"], [7, "A week"], [30, "A month"]], days, (value) => { days = value; load(); })), body,
    h("p", { class: "quiet" }, "As one file to send around: ", h("code", { text: "dovetail report --since 7d" })));
  await load();
}

function drawn(told) {
  const whole = told.busy.length * told.gpus;
  const held = told.busy.reduce((sum, each) => sum + each, 0);
  const over = (values) => values.map((value, index) => [told.since + told.step * (index + 0.5), value]);
  const frame = { from: told.since, to: told.until };
  const wasted = told.spent.filter((each) => each.wasted);
  return [
    h("p", { class: "lead" }, `${moment(told.since)} to ${moment(told.until)}. `, h("b", { text: headline(wasted, held, whole) })),
    h("div", { class: "tiles" }, tile("GPUs held", percent(held, whole), `of ${count(told.gpus)}, on average`), tile("Submitted", count(told.submitted), "jobs"), tile("Done", count(told.done), "jobs"),
      tile("Failed", count(told.failed), "jobs"), tile("Cancelled", count(told.cancelled), "jobs"), tile("Still waiting", count(told.users.reduce((sum, each) => sum + each.waiting, 0)), "jobs")),
    h("div", { class: "charts" },
      card(lines({ ...frame, label: "GPUs held by jobs", y: number, top: told.gpus, series: [{ name: "held, on average", hue: 2, area: true, stepped: true, points: over(told.busy) }] })),
      card(lines({ ...frame, label: "GPUs that waiting jobs asked for", y: number, top: 4, series: [{ name: "asked for, on average", hue: 1, area: true, stepped: true, points: over(told.wanted) }] }))),
    h("section", { class: "card" }, h("h2", { text: "GPU hours by what became of them" }),
      bars(told.spent.map((each) => ({ name: each.cause, value: each.gpu_hours, kind: each.wasted ? "bad" : each.cause === "used" ? "good" : "quiet", note: each.about })), number)),
    h("section", { class: "card flush" }, h("h2", { class: "inset", text: "Waits by user" }), waits("User", told.users.slice(0, MOST_USERS), (each) => person(each.name))),
    h("section", { class: "card flush" }, h("h2", { class: "inset", text: "Waits by size" }), waits("Size", told.sizes, (each) => each.name)),
    h("section", { class: "card flush" }, h("h2", { class: "inset", text: "What waited longest" }), told.longest.length ? longest(told) : h("p", { class: "quiet inset", text: "Nobody waited." })),
  ];
}

const card = (chart) => h("div", { class: "card" }, chart);

function headline(wasted, held, whole) {
  const hours = wasted.reduce((sum, each) => sum + each.gpu_hours, 0);
  const said = `The GPUs were held ${percent(held, whole)} of the time`;
  if (hours < 0.05) return `${said}; nothing was wasted.`;
  const worst = wasted.reduce((most, each) => (each.gpu_hours > most.gpu_hours ? each : most));
  return `${said}; ${number(hours)} GPU hours were wasted, most of them ${worst.cause.startsWith("idle") ? "" : "by "}${worst.cause}.`;
}

function waits(title, groups, name) {
  const columns = [[title], ["Jobs", "num"], ["GPU hours", "num"], ["Wasted", "num"], ["Mean wait", "num"], ["Median", "num"], ["9 of 10 within", "num"], ["Waiting", "num"]];
  return table(`Waits by ${title.toLowerCase()}`, columns, groups.map((each) =>
    [name(each), count(each.jobs), number(each.gpu_hours), number(each.wasted), span(each.mean), span(each.median), span(each.high), count(each.waiting)]));
}

function longest({ longest: jobs, labels }) {
  const columns = [["Job"], ["User"], ["GPUs", "num"], ["Waited", "num"], ["Why", "words"]];
  return table("What waited longest", columns, jobs.map((each) =>
    [h("a", { href: `#/jobs/${each.job}`, text: `${called(each.job, labels)} ${each.name}` }), person(each.user), number(each.gpus), `${span(each.wait)}${each.still ? " so far" : ""}`, each.why]));
}
