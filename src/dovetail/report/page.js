// Draws the figures of the report. Each figure is JSON in the page; colours in it are names of the
// style sheet, looked up here so that the plots follow the reader's light or dark theme.
"use strict";

const figures = JSON.parse(document.getElementById("figures").textContent);
const hidden = new Set();

function resolve(value, style) {
  if (typeof value === "string") {
    const name = /^var\((--[\w-]+)\)$/.exec(value);
    return name ? style.getPropertyValue(name[1]).trim() : value;
  }
  if (Array.isArray(value)) return value.map((each) => resolve(each, style));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, resolve(each, style)]));
}

const axis = { gridcolor: "var(--line)", linecolor: "var(--line)", zeroline: false, fixedrange: false };

function titled(own, size) {
  return { ...axis, ...own, title: { ...own.title, font: { size } } };
}

function layout(figure, narrow) {
  const size = narrow ? 11 : 13;
  return {
    ...figure.layout,
    xaxis: titled(figure.layout.xaxis, size),
    yaxis: titled(figure.layout.yaxis, size),
    margin: { l: 16, r: narrow ? 8 : 16, t: 12, b: narrow ? 44 : 52 },
    font: { family: "var(--font)", size, color: "var(--quiet)" },
    hoverlabel: { bgcolor: "var(--card)", bordercolor: "var(--line)", font: { color: "var(--ink)" } },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    dragmode: narrow ? false : "zoom",
  };
}

const config = { displaylogo: false, displayModeBar: false, topojsonURL: "" };

function draw() {
  const style = getComputedStyle(document.documentElement);
  const narrow = window.innerWidth < 640;
  for (const [key, figure] of Object.entries(figures)) {
    const data = figure.data.map((trace) => ({ ...trace, visible: !hidden.has(trace.meta) }));
    Plotly.react("plot-" + key, resolve(data, style), resolve(layout(figure, narrow), style), config);
  }
}

function toggle(button) {
  const number = Number(button.dataset.series);
  if (!hidden.delete(number)) hidden.add(number);
  button.setAttribute("aria-pressed", String(!hidden.has(number)));
  draw();
}

for (const button of document.querySelectorAll(".legend button")) {
  button.addEventListener("click", () => toggle(button));
}
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
window.matchMedia("(max-width: 639px)").addEventListener("change", draw);
draw();

// Plotly follows the window only; a plot must also follow its frame (rotation, print, a late font).
const frames = new ResizeObserver((changed) => changed.forEach(({ target }) => Plotly.Plots.resize(target)));
document.querySelectorAll(".plot").forEach((plot) => frames.observe(plot));
