// Who owns what, and who has it: each tenant's cells with the jobs on them, and what is lent to whom.

import { h, refill } from "../dom.js";
import { called, count, counted, label, number, ranges, span } from "../format.js";
import { saidOf, watch } from "../owners.js";
import { empty, heading, person, since, table, tenant, tile } from "../parts.js";
import { store } from "../store.js";

/** GPUs of one tenant that are drawn one by one. */
const DRAWN = 512;
const KINDS = { cells: "as cells: as good as a cluster of their own", shares: "as numbers of GPUs, anywhere", private: "as clusters of their own" };

export async function show(root, signal) {
  root.append(heading("Tenants"));
  if (!store.about.tenants) {
    root.append(empty("There are no tenants here: everybody shares everything. Say who owns what in a file:", h("code", { text: "dovetail up --tenancy cells:tenants.toml" })));
    return;
  }
  const body = h("div", { class: "page" });
  root.append(body);
  await watch((told) => refill(body, drawn(told)), signal);
}

function drawn(told) {
  const sum = (key) => told.tenants.reduce((total, each) => total + each[key], 0);
  const named = [...told.tenants, ...(told.patches.some((each) => !each.tenant) ? [null] : [])];
  return [
    h("p", { class: "lead", text: `${counted(told.tenants.length, "tenant")} ${told.tenants.length === 1 ? "owns" : "own"} ${number(told.gpus - told.unowned)} of ${number(told.gpus)} GPUs ${KINDS[told.kind] ?? ""}. What they leave idle is lent until they want it back.` }),
    h("div", { class: "tiles" }, tile("Used by owners", number(sum("used")), "GPUs"), lentTile(told),
      tile("Idle", number(sum("idle")), "GPUs of tenants"), tile("Out of service", number(sum("bad")), "GPUs of tenants"), tile("Nobody's", number(told.unowned), "GPUs")),
    h("div", { class: "legend uses", "aria-hidden": "true" }, [["used", "its owner's job"], ["lent", "lent"], ["returning", "on its way back"], ["idle", "idle"], ["bad", "out of service"]].map(([use, text]) => h("span", { class: "entry" }, h("i", { class: `cell-gpu ${use}` }), text))),
    h("div", { class: "estates" }, named.map((each) => estate(each, told))),
    told.loans.length ? h("section", { class: "card flush" }, h("h2", { class: "inset", text: "What is lent to whom" }), loans(told)) : h("p", { class: "quiet", text: "Nothing is lent." }),
  ];
}

/** What owners do not want back yet; what they do is theirs already. */
function lentTile({ loans: all }) {
  const gpus = (some) => some.reduce((total, each) => total + each.gpus, 0);
  const [lent, returning] = [all.filter((each) => each.back_in === null), all.filter((each) => each.back_in !== null)];
  const jobs = counted(new Set(lent.map((each) => each.job)).size, "job");
  return tile("Lent", number(gpus(lent)), `GPUs to ${jobs}${returning.length ? `; ${number(gpus(returning))} on their way back` : ""}`);
}

/** One tenant, or what nobody owns. */
function estate(owner, told) {
  const name = owner?.name ?? "";
  const patches = told.patches.filter((each) => each.tenant === name);
  const title = owner ? tenant(name) : told.kind === "shares" ? "Idle or borrowed" : "Nobody's";
  const listed = owner && [...owner.users.map((each) => (each === "*" ? "everybody" : each)), ...owner.groups.map((each) => `group ${each}`)].join(", ");
  const may = owner && (listed || `group ${name}`);
  return h("section", { class: "card estate", "aria-label": name || "Nobody's" },
    h("header", {}, h("h2", {}, title), owner ? h("span", { class: "quiet", text: `${number(owner.used)} of ${counted(owner.gpus, "GPU")} used, ${number(owner.idle)} idle${owner.lent ? `, ${number(owner.lent)} lent` : ""}${owner.bad ? `, ${number(owner.bad)} out of service` : ""}${owner.borrowed ? `; borrows ${number(owner.borrowed)}` : ""}` }) : null,
      owner ? h("span", { class: "quiet right", text: `${count(owner.running)} running${owner.borrowing ? ` (${count(owner.borrowing)} on loan)` : ""}, ${count(owner.waiting)} waiting` }) : null),
    picture(patches),
    owner?.cells.length ? cells(owner) : null,
    may ? h("p", { class: "quiet", text: `Jobs of ${may}` }) : null);
}

/** Each cell a box, each GPU of it a square that names the job on it. */
function picture(patches) {
  if (patches.reduce((sum, each) => sum + each.devices.length, 0) > DRAWN) return null;
  const boxes = new Map();
  for (const patch of patches) {
    const key = patch.cell || patch.node;
    boxes.set(key, [...(boxes.get(key) ?? []), patch]);
  }
  return h("div", { class: "boxes" }, [...boxes].map(([key, inside]) => {
    const [{ cell, type, bound }] = inside;
    const nodes = [...new Set(inside.map((each) => each.node))].join(", ");
    const about = cell ? `${cell}: ${type} on ${nodes}${bound ? "" : ", not tied to it"}` : key;
    return h("div", { class: `box${cell && !bound ? " loose" : ""}`, role: "group", "aria-label": about, title: about },
      h("div", { class: "gpus" }, inside.flatMap((patch) => patch.devices.map((device) => square(patch, device)))),
      h("span", { class: "quiet", text: nodes }));
  }));
}

function square(patch, device) {
  const job = patch.jobs.map((id) => store.jobs.get(id)).find((each) => each?.places.some(([node, devices]) => node === patch.node && devices.includes(device))) ?? store.jobs.get(patch.jobs[0]);
  const words = `GPU ${device} of ${patch.node}: ${saidOf(patch)}${job ? `, job ${label(job)} ${job.name} of ${job.owner}` : ""}`;
  const kind = `cell-gpu ${patch.use}${job ? ` hue-${store.hue(job.owner)}` : ""}`;
  return job ? h("a", { class: kind, href: `#/jobs/${job.id}`, title: words, "aria-label": words, "data-key": `${patch.node}-${device}`, text: label(job) }) : h("span", { class: kind, role: "img", title: words, "aria-label": words });
}

function cells({ name, cells: owned }) {
  const columns = [["Cells"], ...["Owned", "Used", "Idle", "Lent", "Bad"].map((title) => [title, "num"])];
  return table(`Cells of ${name}`, columns, owned.map((each) => [`${each.type} (${counted(each.gpus, "GPU")})`, count(each.owned), count(each.used), count(each.idle), count(each.lent), count(each.bad)]));
}

function loans({ loans: lent, kind, labels }) {
  const columns = [["Job"], ["User"], ["From"], ["To"], ["Where"], ["For", "num"], ["Back", "num"]];
  return table("What is lent to whom", columns, lent.map((each) => [
    h("a", { href: `#/jobs/${each.job}`, text: `${called(each.job, labels)} ${each.name}` }), person(each.user), each.lender ? tenant(each.lender) : kind === "shares" ? "–" : "nobody", each.borrower ? tenant(each.borrower) : "nobody", `${each.node} GPU ${ranges(each.devices)}`,
    each.since ? since(each.since) : "–",
    each.back_in === null ? "when wanted" : [`in ${span(each.back_in)}`, each.wanted_by === null ? null : [", for ", h("a", { href: `#/jobs/${each.wanted_by}`, text: called(each.wanted_by, labels) })]]]));
}
