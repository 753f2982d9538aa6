// Begins: lets people in, shows the page the address names, and keeps the head of the page true.

import { get, Refused, session } from "./api.js";
import { h } from "./dom.js";
import { capital } from "./format.js";
import { empty, heading, notify, tick } from "./parts.js";
import { store } from "./store.js";

const PAGES = [
  { path: "", title: "Cluster", load: () => import("./pages/cluster.js") },
  { path: "jobs", title: "Jobs", load: () => import("./pages/jobs.js") },
  { path: "users", title: "Users", load: () => import("./pages/users.js") },
  { path: "tenants", title: "Tenants", load: () => import("./pages/tenants.js"), where: (about) => about.tenants },
  { path: "history", title: "History", load: () => import("./pages/history.js") },
  { path: "report", title: "Report", load: () => import("./pages/report.js") },
  { path: "what-if", title: "What if", load: () => import("./pages/what_if.js") },
  { path: "policy", title: "Policy", load: () => import("./pages/policy.js") },
  { path: "shadow", title: "Shadow", load: () => import("./pages/shadow.js"), where: (about) => about.shadow },
];
const JOB = { title: "Job", load: () => import("./pages/job.js") };

const main = document.getElementById("main");
const head = document.querySelector("header.top");
const nav = head.querySelector("nav");
let leaving = null;
let shown = "";
/** Could the page not be shown? Then it is tried again once the controller answers. */
let failed = false;

function route() {
  const [first = "", second] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  if (first === "jobs" && second) return { page: JOB, at: "jobs", argument: second };
  return { page: PAGES.find(({ path }) => path === first) ?? PAGES[0], at: first, argument: second };
}

async function show() {
  if (!store.about) return;
  const { page, at, argument } = route();
  leaving?.abort();
  const here = (leaving = new AbortController());
  for (const link of nav.children) {
    if (link.dataset.path === at) { link.setAttribute("aria-current", "page"); link.scrollIntoView({ block: "nearest", inline: "center" }); } else link.removeAttribute("aria-current");
  }
  const title = page === JOB ? `Job ${argument}` : page.title;
  document.title = `${title} · Dovetail`;
  const module = await page.load();
  if (here.signal.aborted) return;
  const holder = h("div", { class: "page" });
  main.replaceChildren(holder);
  if (shown && shown !== location.hash) { window.scrollTo(0, 0); main.focus({ preventScroll: true }); }
  shown = location.hash;
  failed = false;
  try {
    await module.show(holder, here.signal, argument);
  } catch (error) {
    if (here.signal.aborted) return;
    if (!(error instanceof Refused)) throw error;
    failed = true;
    holder.replaceChildren(heading(title), empty(capital(error.message)));
  }
}

async function enter() {
  store.about = await get("about");
  // A page that would be empty here is not offered; its address still says why.
  nav.replaceChildren(...PAGES.filter(({ where }) => !where || where(store.about)).map(({ path, title }) => h("a", { href: `#/${path}`, "data-path": path, text: title })));
  head.hidden = false;
  document.body.classList.remove("outside");
  store.follow();
  await store.load();
  await show();
  // So that whoever walks on is told in words when the controller has gone.
  for (const { load } of [...PAGES, JOB]) load().catch(() => {});
}

async function login(sentence) {
  leaving?.abort();
  store.leave();
  session.token = "";
  head.hidden = true;
  document.body.classList.add("outside");
  document.title = "Sign in · Dovetail";
  const { form } = await import("./pages/login.js");
  main.replaceChildren(form(sentence, async (token) => { session.token = token; await enter(); }));
  main.querySelector("input").focus();
}

function furnish() {
  const theme = document.getElementById("theme");
  const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const label = () => { theme.textContent = dark() ? "Light" : "Dark"; theme.setAttribute("aria-label", `Use the ${dark() ? "light" : "dark"} theme`); };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("dovetail-theme", document.documentElement.dataset.theme); } catch { /* for this page only, then */ }
    label();
    store.emit("theme", null);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { label(); store.emit("theme", null); });
  label();
  document.getElementById("leave").addEventListener("click", () => login(""));
  const state = head.querySelector(".link-state");
  store.addEventListener("link", ({ detail }) => {
    state.dataset.state = detail;
    state.lastChild.textContent = detail === "live" ? "live" : "reconnecting";
    if (detail === "live" && failed) show();
  });
}

session.expired = (sentence) => { if (store.about) login(sentence); };
window.addEventListener("hashchange", show);
window.addEventListener("unhandledrejection", (event) => {
  if (event.reason instanceof Refused) { event.preventDefault(); if (event.reason.code !== 401) notify(event.reason.message); }
  if (event.reason?.name === "AbortError") event.preventDefault();
});
setInterval(() => { if (!document.hidden) tick(main); }, 1000);
furnish();
if (session.token) enter().catch((error) => login(error.message));
else login("");
