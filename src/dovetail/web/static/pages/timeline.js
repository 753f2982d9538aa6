// What became of a job over time: waiting, and each attempt with what it held.

import { h, s } from "../dom.js";
import { coreWords, exact, memory, moment, ranges, span } from "../format.js";
import { store } from "../store.js";

export function timeline({ job, runs }) {
  const from = job.submitted;
  const to = job.ended ?? store.now();
  const pieces = piecesOf(job, runs, to);
  const whole = Math.max(1e-6, to - from);
  const share = (at) => (100 * Math.max(0, at - from)) / whole;
  return [
    s("svg", { class: "timeline", width: "100%", height: 30, role: "img", "aria-label": pieces.map(worded).join("; ") },
      pieces.map((piece) => s("rect", { class: piece.kind, x: `${share(piece.from)}%`, width: `${Math.max(0.4, share(piece.to) - share(piece.from))}%`, y: 2, height: 26, rx: 3 },
        s("title", { text: worded(piece) })))),
    h("div", { class: "ends quiet", "aria-hidden": "true" }, h("span", { title: exact(from), text: moment(from) }), h("span", { text: span(to - from) }), h("span", { title: exact(to), text: job.ended ? moment(to) : "now" })),
    h("ol", { class: "steps" }, pieces.map((piece) => h("li", {}, h("i", { class: `mark ${piece.kind}`, "aria-hidden": "true" }),
      h("span", { class: "at", title: exact(piece.from), text: moment(piece.from) }), h("span", { class: "what" }, piece.text, piece.more ? h("span", { class: "quiet", text: ` ${piece.more}` }) : null), h("span", { class: "long", text: span(piece.to - piece.from) })))),
  ];
}

const worded = (piece) => `${piece.text} ${piece.more} for ${span(piece.to - piece.from)}`;

function piecesOf(job, runs, to) {
  const found = [];
  let at = job.submitted;
  const waits = (until) => { if (until - at > 0.5 || !found.length) found.push({ kind: job.state === "held" && until === to ? "held" : "waiting", from: at, to: until, text: "waits", more: "" }); };
  // Others' attempts are not told: then the first start is all there is.
  const attempts = runs.length || !job.started ? runs : [{ number: 1, started: job.started, ended: job.ended, outcome: "", places: job.places }];
  for (const run of attempts) {
    waits(run.started);
    const end = run.ended ?? to;
    const on = run.places.map((place) => `${place.node}${place.devices.length ? ` GPU ${ranges(place.devices)}` : ""}, ${coreWords(place.cpu)}, ${memory(place.memory)}`).join(" + ");
    const bad = run.ended && run.outcome && !/^(exit code 0|stopped)\b/.test(run.outcome);
    found.push({ kind: bad ? "failed" : "running", from: run.started, to: end, text: attempts.length > 1 ? `attempt ${run.number}` : "runs", more: `on ${on}${run.outcome && run.ended ? ` — ${run.outcome}` : ""}` });
    at = end;
  }
  if (!job.ended && !job.places.length) waits(to);
  else if (job.ended && to - at > 0.5) waits(to);
  return found;
}
