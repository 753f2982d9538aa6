// Small charts as drawings: lines over time or over a share, and bars from before to after.

import { h, s } from "./dom.js";

const PAD = { right: 14, top: 10, bottom: 22 };
const SIGN = 6.4;

/** Round steps that fill a range: 1, 2 or 5 times a power of ten, or what clocks show. */
export function steps(most, about, clock = false) {
  if (!(most > 0)) return [0, 1];
  const rough = most / about;
  const sizes = clock
    ? [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000]
    : [1, 2, 5, 10].map((each) => each * 10 ** Math.floor(Math.log10(rough)));
  const step = sizes.find((each) => each >= rough) ?? sizes.at(-1);
  const found = [];
  for (let at = 0; at < most + step * 0.999; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

function timeTicks(from, to, width) {
  const step = [5, 10, 30, 60, 300, 900, 1800, 3600, 10800, 21600, 43200, 86400, 604800, 2592000].find((each) => (to - from) / each <= Math.max(2, width / 90)) ?? 7776000;
  const shift = new Date(from * 1000).getTimezoneOffset() * 60;
  const found = [];
  for (let at = Math.ceil((from - shift) / step) * step + shift; at <= to; at += step) found.push(at);
  const days = step >= 86400;
  return found.map((at) => [at, days
    ? new Date(at * 1000).toLocaleDateString([], { day: "numeric", month: "short" })
    : new Date(at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false, ...(step < 60 ? { second: "2-digit" } : {}) })]);
}

/**
 * Lines in one frame. `series`: [{name, hue, points: [[x, y|null]], area, dashed, steps}].
 * `x`: "time", or a function that words a value; `y`: words a value; `top`: the least top of the axis.
 */
export function lines({ label, series, x = "time", y, said = y, top = 0, height = 150, clock = false, xTicks = null, from = null, to = null }) {
  const figure = h("figure", { class: "chart" });
  const shown = series.filter((each) => each.points.some(([, value]) => value !== null));
  const all = shown.flatMap((each) => each.points);
  figure.append(h("figcaption", {}, h("span", { class: "title", text: label }),
    ...shown.map((each) => h("span", { class: "key" }, h("i", { class: `line hue-${each.hue}${each.dashed ? " dashed" : ""}`, "aria-hidden": "true" }), each.name, x === "time" ? h("b", { text: said(lastOf(each.points)) }) : null))));
  if (!all.length) { figure.append(h("p", { class: "quiet", text: "Nothing was measured yet." })); return figure; }
  const bounds = { from: from ?? Math.min(...all.map(([at]) => at)), to: to ?? Math.max(...all.map(([at]) => at)) };
  if (bounds.to <= bounds.from) bounds.to = bounds.from + 1;
  const marks = steps(Math.max(top, ...all.map(([, value]) => value ?? 0)) || 1, height / 42, clock);
  const most = marks.at(-1);
  const left = Math.max(30, 10 + SIGN * Math.max(...marks.map((value) => y(value).length)));
  const holder = h("div", { class: "plot" });
  const tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  figure.append(holder);
  let drawn = 0;
  const draw = () => {
    const width = Math.max(160, Math.floor(holder.clientWidth));
    if (width === drawn) return;
    drawn = width;
    const px = (at) => left + ((at - bounds.from) / (bounds.to - bounds.from)) * (width - left - PAD.right);
    const py = (value) => height - PAD.bottom - (value / most) * (height - PAD.top - PAD.bottom);
    const ticks = x === "time" ? timeTicks(bounds.from, bounds.to, width) : (xTicks ?? steps(bounds.to, 5).filter((at) => at <= bounds.to)).map((at) => [at, x(at)]);
    const latest = shown.map((each) => `${each.name} ${said(lastOf(each.points))}`).join(", ");
    const svg = s("svg", { width, height, role: "img", "aria-label": `${label}; latest: ${latest}` },
      marks.map((value) => [s("line", { class: "grid", x1: left, x2: width - PAD.right, y1: py(value), y2: py(value) }),
        s("text", { class: "axis", x: left - 7, y: py(value) + 4, "text-anchor": "end", text: y(value) })]),
      ticks.map(([at, text]) => s("text", { class: "axis", x: px(at) > width - 26 ? width - 2 : px(at), y: height - 5, "text-anchor": px(at) > width - 26 ? "end" : "middle", text })),
      shown.map((each) => path(each, px, py)));
    const cross = s("line", { class: "cross", y1: PAD.top, y2: height - PAD.bottom, visibility: "hidden" });
    svg.append(cross);
    svg.addEventListener("pointermove", (event) => point(event, { svg, cross, tip, px, left, width, bounds, shown, x, y: said }));
    svg.addEventListener("pointerleave", () => { tip.hidden = true; cross.setAttribute("visibility", "hidden"); });
    holder.replaceChildren(svg, tip);
  };
  new ResizeObserver(draw).observe(holder);
  return figure;
}

const lastOf = (points) => points.findLast(([, value]) => value !== null)?.[1];

function path({ points, hue, area, dashed, stepped }, px, py) {
  let line = "";
  let begun = null;
  let last = null;
  const fills = [];
  const close = () => { if (begun !== null) fills.push(`${line.slice(line.lastIndexOf("M"))}L${last} ${py(0)}L${begun} ${py(0)}Z`); begun = null; };
  for (const [at, value] of points) {
    if (value === null) { close(); continue; }
    const left = px(at).toFixed(1);
    const up = py(value).toFixed(1);
    if (begun === null) { line += `M${left} ${up}`; begun = left; } else line += stepped ? `H${left}V${up}` : `L${left} ${up}`;
    last = left;
  }
  close();
  return s("g", { class: `series hue-${hue}` },
    area ? fills.map((d) => s("path", { class: "area", d })) : null,
    s("path", { class: `stroke${dashed ? " dashed" : ""}`, d: line }));
}

function point(event, { svg, cross, tip, px, left, width, bounds, shown, x, y }) {
  const box = svg.getBoundingClientRect();
  const wanted = bounds.from + ((event.clientX - box.left - left) / (width - left - PAD.right)) * (bounds.to - bounds.from);
  const nearest = shown.map((each) => [each, each.points.reduce((best, now) => (Math.abs(now[0] - wanted) < Math.abs(best[0] - wanted) ? now : best))]);
  const [where] = nearest[0][1];
  const title = x === "time" ? new Date(where * 1000).toLocaleString([], { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hour12: false }) : x(where);
  tip.replaceChildren(h("b", { text: title }), ...nearest.map(([each, [, value]]) => h("span", {}, h("i", { class: `line hue-${each.hue}` }), `${each.name} ${value === null ? "–" : y(value)}`)));
  tip.hidden = false;
  const at = px(where);
  tip.style.setProperty("left", `${at > width / 2 ? Math.max(4, at - tip.offsetWidth - 10) : at + 10}px`);
  cross.setAttribute("x1", at);
  cross.setAttribute("x2", at);
  cross.setAttribute("visibility", "visible");
}

/** Rows from before to after: [{name, before, after, note}]; shorter is better. */
export function shifts(rows, word) {
  const most = Math.max(1e-9, ...rows.flatMap((row) => [row.before, row.after]));
  const share = (value) => `${(100 * value) / most}%`;
  return h("div", { class: "shifts", role: "list" }, rows.map((row) => {
    const better = row.after < row.before;
    const [low, high] = [Math.min(row.before, row.after), Math.max(row.before, row.after)];
    const change = row.before ? Math.round((100 * (row.after - row.before)) / row.before) : 0;
    return h("div", { class: "shift", role: "listitem" },
      h("span", { class: "name", title: row.name, text: row.name }),
      h("div", { class: "track", "aria-hidden": "true" },
        h("i", { class: `reach ${better ? "good" : "bad"}`, style: { left: share(low), width: share(high - low) } }),
        h("i", { class: "end was", style: { left: share(row.before) } }),
        h("i", { class: `end ${better ? "good" : "bad"}`, style: { left: share(row.after) } })),
      h("span", { class: "said" }, `${word(row.before)} → ${word(row.after)}`, h("b", { class: better ? "good" : change > 0 ? "bad" : "", text: ` ${change > 0 ? "+" : change < 0 ? "−" : "±"}${Math.abs(change)} %` })));
  }));
}

/** Rows with a bar each: [{name, value, kind, note}]. */
export function bars(rows, word) {
  const most = Math.max(1e-9, ...rows.map((row) => row.value));
  return h("div", { class: "bars", role: "list" }, rows.map((row) => h("div", { class: "shift", role: "listitem", title: row.note },
    h("span", { class: "name", text: row.name }),
    h("div", { class: "bar", "aria-hidden": "true" }, h("i", { class: `whole ${row.kind}`, style: { width: `${(100 * row.value) / most}%` } })),
    h("span", { class: "said" }, h("b", { text: word(row.value) }), row.note ? h("span", { class: "note", text: row.note }) : null))));
}
