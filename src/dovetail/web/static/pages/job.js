// One job: what it is, what became of it so far, how it goes, and what it writes.

import { get, post } from "../api.js";
import { lines } from "../chart.js";
import { h, refill, throttled } from "../dom.js";
import { called, capital, cores, coreWords, count, label, memory, number, percent, range, ranges, span } from "../format.js";
import { badge, confirmed, ENDED, heading, notify, person, since, when } from "../parts.js";
import { store } from "../store.js";
import { follow } from "./log.js";
import { timeline } from "./timeline.js";
import { whyCard } from "./why.js";

const FRESH = 15_000;

export async function show(root, signal, reference) {
  const head = h("div", {});
  const facts = h("section", { class: "card facts", "aria-label": "Facts" });
  const times = h("section", { class: "card", "aria-label": "Timeline" });
  const why = h("div", {});
  const charts = h("section", { class: "charts", "aria-label": "Measurements" });
  const log = h("section", { class: "card log", "aria-label": "Log" });
  let detail = await get(`jobs/${encodeURIComponent(reference)}`);
  let stretches = await get(`jobs/${detail.job.id}/timeline`);
  const mine = () => ["admin"].includes(store.about.role) || (store.about.role === "user" && store.about.you === detail.job.owner);
  const draw = () => {
    refill(head, title(detail, mine(), reload));
    refill(facts, factsOf(detail, estimate));
    refill(times, h("h2", { text: "Timeline" }), timeline(detail, stretches));
  };
  const measure = async () => {
    const [points, curve] = await Promise.all([get(`jobs/${detail.job.id}/usage`), get(`jobs/${detail.job.id}/profile`)]);
    if (!signal.aborted) charts.replaceChildren(...graphs(points, curve));
  };
  const reload = async () => {
    detail = await get(`jobs/${detail.job.id}`);
    if (signal.aborted) return;
    if (Date.now() - asked > FRESH) await foresee();
    draw();
  };
  let estimate = null;
  let asked = 0;
  // Looking ahead is work for the controller: now and then will do. What is held back starts when somebody says so.
  const foresee = async () => {
    asked = Date.now();
    const { job } = detail;
    // It may have ended or been held since: then there is no answer.
    estimate = job.ended || job.state === "held" ? null : ((await get("when", { jobs: job.id }))[job.id] ?? null);
    const told = job.ended ? null : await get(`jobs/${job.id}/why`);
    if (!signal.aborted) refill(why, told && whyCard(told));
  };
  root.append(head, h("div", { class: "columns" }, facts, h("div", { class: "stack" }, times, why)), charts, log);
  draw();
  await Promise.all([measure(), foresee().then(draw)]);
  if (mine()) follow(log, () => detail.job, signal);
  else log.append(h("h2", { text: "Log" }), h("p", { class: "quiet", text: "Its owner and admins see what it writes." }));
  const later = throttled(500, async () => {
    const before = holding(stretches);
    stretches = await get(`jobs/${detail.job.id}/timeline`);
    // What was said of its state and of what it had counts no more.
    if (holding(stretches) !== before) asked = 0;
    await reload();
    await measure();
  });
  store.on(["jobs"], (touched) => { if (!touched || touched.has(detail.job.id)) later(); }, signal);
  store.on(["sample"], () => { if (!detail.job.ended) measure(); }, signal);
  // How far it is, and why it waits, change without a decision.
  const timer = setInterval(() => { if (!document.hidden && !detail.job.ended) reload(); }, 2000);
  signal.addEventListener("abort", () => { later.cancel(); clearInterval(timer); });
}

const holding = (stretches) => JSON.stringify([stretches.at(-1)?.state, stretches.at(-1)?.places]);

function title({ job, labels }, mine, reload) {
  const deed = (verb, text, question, danger) => h("button", {
    type: "button", class: danger ? "danger" : "", "data-key": verb, text,
    onclick: async () => {
      if (question && !(await confirmed(question, text))) return;
      try { const { new: made } = await post(`jobs/${job.id}/${verb}`); if (made?.length) location.hash = `#/jobs/${made[0]}`; else await reload(); } catch (error) { notify(error.message); }
    },
  });
  const verbs = [];
  if (mine && !job.ended) {
    if (job.state === "held") verbs.push(deed("release", "Release"));
    else if (!job.places.length) verbs.push(deed("hold", "Hold"));
    verbs.push(deed("cancel", "Cancel", `End job ${label(job)}, ${job.name}? What it has not saved is lost.`, true));
  } else if (mine) verbs.push(deed("requeue", "Run again"));
  const [steps, total, rate] = job.progress ? [job.progress.steps, job.progress.total, job.progress.rate] : [];
  return [
    h("nav", { class: "crumbs", "aria-label": "Where" }, h("a", { href: "#/jobs", text: "Jobs" }), ` / ${label(job)}`),
    heading(job.name, badge(job.state), h("div", { class: "row verbs" }, verbs)),
    job.reason && job.reason !== `it is ${job.state}` ? h("div", { class: `reason ${job.state}` }, h("p", { text: capital(job.reason) }),
      job.unblock || job.blockers?.length ? h("p", { class: "quiet" }, job.unblock ? `What would do: ${job.unblock}. ` : null,
        job.blockers?.length ? ["In the way: ", job.blockers.slice(0, 8).flatMap((id) => [h("a", { href: `#/jobs/${id}`, text: called(id, labels) }), " "]), job.blockers.length > 8 ? `and ${job.blockers.length - 8} more` : null] : null) : null) : null,
    total ? h("div", { class: "progress-line" },
      h("progress", { max: total, value: steps, "aria-label": "Progress" }), h("span", { text: `${percent(steps, total)} · ${count(steps)} of ${count(total)} steps${rate ? ` · ${number(rate)} a second · ${span((total - steps) / rate)} left` : ""}` })) : null,
  ];
}

function factsOf({ job, directory, environment, hidden, labels }, estimate) {
  const row = (name, ...values) => [h("dt", { text: name }), h("dd", {}, ...values)];
  const asked = [`${number(job.gpus)} GPU${job.gpus === 1 ? "" : "s"}`, job.cpu === null ? "CPU as the policy sees fit" : coreWords(job.cpu), job.memory === null ? (job.cpu === null ? "memory likewise" : "memory as the policy sees fit") : memory(job.memory)];
  return [h("h2", { text: "Facts" }), h("dl", {},
    row("User", person(job.owner), job.tenant ? ` of ${job.tenant}` : ""),
    row("Asked for", asked.join(", ")),
    job.places.length ? row("Has", ...job.places.map((on) => h("div", { text: `${on.node}: ${on.devices.length ? `GPU ${ranges(on.devices)}, ` : ""}${coreWords(on.cpu)}, ${memory(on.memory)}${on.share < 1000 ? `, ${percent(on.share, 1000)} of each GPU` : ""}` }))) : [],
    row("Submitted", when(job.submitted)),
    job.started ? row("Waited", span(job.started - job.submitted)) : ENDED.has(job.state) ? [] : row("Waits", since(job.submitted)),
    estimate && !job.places.length ? row("Starts", range(estimate.start), chance(estimate)) : [],
    estimate ? row("Ends", range(estimate.end), chance(estimate)) : [],
    job.ended ? row("Ended", when(job.ended), job.code === null ? (job.signal ? `, by signal ${job.signal}` : "") : `, exit code ${job.code}`) : [],
    job.attempts > 1 || job.failures ? row("Attempts", `${job.attempts}${job.failures ? `, ${job.failures} failed` : ""}`) : [],
    job.priority ? row("Priority", number(job.priority)) : [],
    job.time_limit ? row("Time limit", span(job.time_limit)) : [],
    job.deadline ? row("Deadline", when(job.deadline)) : [],
    job.saved ? row("Last checkpoint", when(job.saved)) : [],
    job.after.length ? row("After", job.after.flatMap((id) => [h("a", { href: `#/jobs/${id}`, text: called(id, labels) }), " "])) : [],
    row("If displaced", job.resumable ? "it checkpoints and comes back" : "it is not stopped for others, unless what it runs on is theirs"),
    job.command.length ? row("Command", h("code", { text: job.command.map(quoted).join(" ") })) : [],
    directory ? row("Directory", h("code", { text: directory })) : []),
  environment?.length || hidden?.length ? h("details", {}, h("summary", { text: `Environment (${environment.length}${hidden.length ? `, ${hidden.length} hidden` : ""})` }),
    h("pre", { text: [...environment.map(([name, value]) => `${name}=${value}`), ...hidden.map((name) => `${name}=…`)].join("\n") })) : null];
}

/** How sure an estimate is, and how often such estimates held before. */
function chance({ start, end, chance: sure, past }) {
  if (start.middle === null && end.middle === null) return null;
  const before = past.estimates && past.held !== null ? `; ${percent(past.held, 1)} of ${count(past.estimates)} held so far` : "";
  return h("span", { class: "quiet", text: `, ${percent(sure, 1)} sure${before}` });
}

const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

function graphs(points, curve) {
  const of = (key) => points.map((point) => [point.at, point[key]]);
  const gib = (key) => points.map((point) => [point.at, point[key] === null ? null : point[key] / 1024]);
  const made = [];
  if (points.some((point) => point.rate !== null)) made.push(lines({ label: "Throughput, steps a second", y: number, series: [{ name: "rate", hue: 2, area: true, points: of("rate") }] }));
  if (points.some((point) => point.gpu !== null)) made.push(lines({ label: "GPU use, percent", y: number, top: 100, series: [{ name: "busy", hue: 2, area: true, points: of("gpu") }] }));
  if (points.length > 1) {
    made.push(lines({ label: "CPU, cores", y: cores, series: [{ name: "granted", hue: 6, dashed: true, stepped: true, points: of("cpu_granted") }, { name: "used", hue: 0, area: true, points: of("cpu_used") }] }));
    made.push(lines({ label: "Memory, GiB", y: number, said: (value) => memory(1024 * value), series: [{ name: "granted", hue: 6, dashed: true, stepped: true, points: gib("memory_granted") }, { name: "used", hue: 3, area: true, points: gib("memory_used") }] }));
  }
  if (curve) {
    const mark = curve.granted === null ? [] : [{ name: `now ${number(curve.granted)} cores: ${number(curve.speed)} ×`, hue: 1, points: [[curve.granted, 0], [curve.granted, curve.speed]] }];
    made.push(lines({ label: `Speed of ${curve.model} by cores per GPU`, x: (at) => number(at), y: (value) => `${number(value)} ×`, from: 0, series: [{ name: "believed", hue: 2, points: [[0, 0], ...curve.cores.map((at, index) => [at, curve.speeds[index]])] }, ...mark] }));
  }
  return made.map((each) => h("div", { class: "card" }, each));
}
