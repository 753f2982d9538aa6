// The policy in the shadow: what it would have decided otherwise, and what that would mean for whom.

import { get } from "../api.js";
import { shifts } from "../chart.js";
import { h, refill } from "../dom.js";
import { called, count, exact, moment, percent, span } from "../format.js";
import { empty, heading, tile } from "../parts.js";
import { store } from "../store.js";

const EVERY = 5000;
const NAMED = 8;
const DEEDS = { instead: "started", passed: "not started", stops: "stopped", spared: "not stopped" };

export async function show(root, signal) {
  root.append(heading("Shadow"));
  if (!store.about.shadow) {
    root.append(empty("No policy is in the shadow. A controller that was started so lets one look on, which decides and never acts:", h("code", { text: "dovetail up --shadow srtf" })));
    return;
  }
  const body = h("div", { class: "page" });
  const load = async () => { const told = await get("shadow", {}, { signal }); if (!signal.aborted) refill(body, drawn(told)); };
  root.append(body);
  await load();
  const timer = setInterval(() => { if (!document.hidden) load(); }, EVERY);
  signal.addEventListener("abort", () => clearInterval(timer));
}

function drawn(told) {
  const sooner = told.wait_candidate <= told.wait_present;
  return [
    h("p", { class: "lead" }, h("code", { text: told.policy }), " looks on while ", h("code", { text: told.present }), ` decides, since ${moment(told.since)}. It decides and never acts. `,
      h("a", { href: `#/what-if/${encodeURIComponent(told.policy)}`, text: "Replay the past under it" })),
    told.failures ? h("p", { class: "reason failed", text: `${count(told.failures)} times it could not decide; the last time: ${told.failure}` }) : null,
    h("div", { class: "tiles" },
      tile("Would decide otherwise", percent(told.otherwise, told.acted), `${count(told.otherwise)} of ${count(told.acted)} decisions to act`),
      tile("Wait still to come", span(told.wait_candidate), `${sooner ? "instead of" : "up from"} ${span(told.wait_present)}, on average`),
      tile("Asked about", count(told.asked), `of ${count(told.decisions)} decisions`),
      tile("Costs", `${(100 * told.share).toFixed(1)} %`, `of the time; ${percent(told.budget, 1)} is its limit`)),
    told.users.length ? h("section", { class: "card" }, h("h2", { text: "Mean wait still to come, by user" }),
      shifts(told.users.map((each) => ({ name: each.user || "nobody", before: each.present, after: each.candidate })), span)) : null,
    h("section", { class: "card" }, h("h2", { text: "The latest differences" }),
      told.differences.length ? h("ol", { class: "steps", tabindex: 0, "aria-label": "Differences", "data-key": "differences" }, told.differences.map((each) => difference(each, told.labels))) : h("p", { class: "quiet", text: "None yet: it would have done the same." })),
  ];
}

function difference(each, labels) {
  const parts = Object.entries(DEEDS).filter(([key]) => each[key].length).map(([key, verb]) => [`${verb} `, named(each[key], labels)]);
  return h("li", {}, h("i", { class: "mark waiting", "aria-hidden": "true" }), h("span", { class: "at", title: exact(each.at), text: moment(each.at) }),
    h("span", { class: "what" }, "it would have ", parts.flatMap((part, index) => (index ? ["; ", ...part] : part))));
}

function named(jobs, labels) {
  const links = jobs.slice(0, NAMED).flatMap((id, index) => [index ? ", " : null, h("a", { href: `#/jobs/${id}`, text: called(id, labels) })]);
  return [...links, jobs.length > NAMED ? ` and ${jobs.length - NAMED} more` : null];
}
