// Why a job waits or has what it has: who is in front, and what would help.

import { h } from "../dom.js";
import { capital, count, number, percent, span } from "../format.js";
import { person } from "../parts.js";

/** A card, or nothing where there is nothing to say. */
export function whyCard({ blame, instead, loan, stopped, grant }) {
  const parts = [
    instead.length ? [h("h2", { text: "What would help" }), h("ul", { class: "help" }, instead.map(help))] : null,
    blame.length ? [h("h2", { text: "In front" }), h("div", { class: "blame" }, blame.map(blamed))] : null,
    loan ? [h("h2", { text: "On loan" }), h("p", { text: capital(loan) })] : null,
    stopped ? [h("h2", { text: "Why it was stopped" }), h("p", { text: capital(stopped) })] : null,
    grant ? [h("h2", { text: "Why it has what it has" }), h("p", { text: capital(grant) })] : null,
  ].filter(Boolean);
  return parts.length ? h("section", { class: "card why-card", "aria-label": "Why" }, parts) : null;
}

function help({ change, starts_in: soon, sooner, stops }) {
  const gain = soon < 1 ? "it would start now" : `it would start in ${span(soon)}`;
  return h("li", {}, h("b", { text: change }), `: ${gain}`, sooner ? h("span", { class: "good", text: `, ${span(sooner)} sooner` }) : null,
    stops.length ? h("span", { class: "quiet", text: `; ${count(stops.length)} would be stopped for it` }) : null);
}

function blamed({ job, label, name, owner, state, gpus, share }) {
  return h("div", {}, h("a", { href: `#/jobs/${job}`, text: `${label} ${name}` }), person(owner),
    h("span", { class: "quiet", text: `${state}, ${number(gpus)} GPU${gpus === 1 ? "" : "s"}` }),
    h("span", { class: "bar", role: "img", "aria-label": percent(share, 1) }, h("i", { class: "used", style: { width: `${100 * share}%` } })));
}
