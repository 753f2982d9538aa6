// Use and waits over the last day, as the controller measured them.

import { get } from "../api.js";
import { lines } from "../chart.js";
import { h } from "../dom.js";
import { cores, count, memory, number, span } from "../format.js";
import { choice, heading } from "../parts.js";
import { store } from "../store.js";

export async function show(root, signal) {
  let hours = 6;
  const body = h("div", { class: "charts one" });
  let samples = [];
  const draw = () => { if (!signal.aborted) body.replaceChildren(...graphs(samples, hours).map((each) => h("div", { class: "card" }, each))); };
  const load = async () => { samples = await get("series", { since: store.now() - hours * 3600, most: 720 }); draw(); };
  root.append(heading("History", choice("Span", [[1, "1 hour"], [6, "6 hours"], [24, "A day"]], hours, (value) => { hours = value; load(); })), body);
  await load();
  store.on(["sample"], (sample) => { samples.push(sample); draw(); }, signal);
}

function graphs(samples, hours) {
  const to = store.now();
  const earliest = samples[0]?.at ?? to - 60;
  const from = Math.max(to - hours * 3600, Math.min(earliest, to - 300));
  const of = (key) => samples.map((sample) => [sample.at, sample[key]]);
  const gib = (key) => samples.map((sample) => [sample.at, sample[key] === null ? null : sample[key] / 1024]);
  const last = samples.at(-1) ?? {};
  const frame = { from, to };
  return [
    lines({ ...frame, label: "GPUs", y: number, top: last.gpus, series: [{ name: "there are", hue: 6, dashed: true, points: of("gpus") }, { name: "held by jobs", hue: 2, area: true, stepped: true, points: of("busy") }] }),
    lines({ ...frame, label: "Jobs", y: count, top: 4, series: [{ name: "waiting", hue: 1, stepped: true, area: true, points: of("waiting") }, { name: "running", hue: 2, stepped: true, points: of("running") }] }),
    lines({ ...frame, label: "Wait", y: span, clock: true, top: 60, series: [{ name: "so far, of those who wait", hue: 1, points: of("age") }, { name: "of those who started", hue: 0, points: of("wait").filter(([, value]) => value !== null) }] }),
    lines({ ...frame, label: "CPU, cores", y: cores, top: last.cpu, series: [{ name: "there are", hue: 6, dashed: true, points: of("cpu") }, { name: "granted", hue: 5, area: true, stepped: true, points: of("cpu_granted") }, { name: "used", hue: 0, area: true, points: of("cpu_used") }] }),
    lines({ ...frame, label: "Memory, GiB", y: number, said: (value) => memory(1024 * value), top: last.memory / 1024, series: [{ name: "there is", hue: 6, dashed: true, points: gib("memory") }, { name: "granted", hue: 5, area: true, stepped: true, points: gib("memory_granted") }, { name: "used", hue: 3, area: true, points: gib("memory_used") }] }),
  ];
}
