/** NUMA cells as a drawing: processors by core, memory, and the devices near them. */
import { h } from "preact";
import { count, counted, percent, shortAmount } from "../page/format.js";
import { Card, Meter } from "../parts/elements.js";
import { coresOf } from "./tree_data.js";

/** @param {{facts: any}} props */
export function Numa({ facts }) {
  const cells = facts.numa?.cells ?? [];
  const pools = facts.pci_pools ?? [];
  if (!cells.length && !pools.length) return null;
  const known = new Set(cells.map((/** @type {any} */ cell) => cell.id));
  const poolsOf = (/** @type {number} */ id) => pools.filter((/** @type {any} */ pool) => pool.numa_node === id);
  const rest = pools.filter((/** @type {any} */ pool) => !known.has(pool.numa_node));
  return h(
    Card,
    {
      title: cells.length ? "NUMA cells and devices" : "Devices",
      second: "As the host reported them; only free devices are listed.",
    },
    cells.length
      ? h(
          "div",
          { class: "legend plain" },
          h("span", {}, h("span", { class: "processor shared" }), " shared"),
          h("span", {}, h("span", { class: "processor dedicated" }), " dedicated, free"),
          h("span", {}, h("span", { class: "processor pinned" }), " dedicated, in use"),
        )
      : null,
    h(
      "div",
      { class: "numa" },
      cells.map((/** @type {any} */ cell) => h(Cell, { key: cell.id, cell, pools: poolsOf(cell.id) })),
      rest.length
        ? h(
            "section",
            { class: "numa-cell", "aria-label": "Devices without a cell" },
            h("h3", {}, "Without a cell"),
            h(Devices, { pools: rest }),
          )
        : null,
    ),
  );
}

/** @param {{cell: any, pools: any[]}} props */
function Cell({ cell, pools }) {
  const shared = cell.cpus ?? [];
  const dedicated = cell.pcpus ?? [];
  const pinned = new Set(cell.pinned_cpus ?? []);
  const usage = cell.memory_usage ?? 0;
  const memory = shortAmount("MEMORY_MB", cell.memory_mb);
  const text = [
    shared.length
      ? `${counted(shared.length, "shared processor")}${cell.cpu_usage ? `, ${count(cell.cpu_usage)} VCPU on them` : ""}`
      : "",
    dedicated.length ? `${count(pinned.size)} of ${counted(dedicated.length, "dedicated processor")} in use` : "",
  ]
    .filter(Boolean)
    .join("; ");
  const kindOf = (/** @type {number} */ each) =>
    shared.includes(each) ? "shared" : pinned.has(each) ? "pinned" : "dedicated";
  return h(
    "section",
    { class: "numa-cell", "aria-label": `NUMA cell ${cell.id}` },
    h(
      "div",
      { class: "figure-row" },
      h("h3", {}, `Cell ${cell.id}`),
      typeof cell.socket === "number" ? `socket ${cell.socket}` : "",
    ),
    h(
      "div",
      { class: "cores", role: "img", "aria-label": `Processors: ${text || "none"}` },
      coresOf(cell).map((core) =>
        h(
          "span",
          { key: core[0], class: "core" },
          core.map((/** @type {number} */ each) =>
            h(
              "span",
              { key: each, class: `processor ${kindOf(each)}`, title: `processor ${each}, ${kindOf(each)}` },
              each,
            ),
          ),
        ),
      ),
    ),
    h("p", { class: "second" }, text),
    h(
      "div",
      {},
      h(
        "div",
        { class: "figure-row" },
        h("span", {}, "Memory"),
        h("span", {}, usage ? `${shortAmount("MEMORY_MB", usage)} of ${memory}` : memory),
      ),
      usage
        ? h(Meter, {
            share: usage / cell.memory_mb,
            label: `Memory of cell ${cell.id}: ${percent(usage / cell.memory_mb)} used`,
          })
        : null,
    ),
    (cell.mempages ?? []).length ? h(Pages, { pages: cell.mempages }) : null,
    pools.length ? h(Devices, { pools }) : null,
  );
}

/** @param {{pages: any[]}} props */
function Pages({ pages }) {
  return h(
    "p",
    { class: "second" },
    pages
      .map(
        (each) => `${count(each.total ?? 0)} pages of ${count(each.size_kb ?? 0)} KiB, ${count(each.used ?? 0)} in use`,
      )
      .join("; "),
  );
}

/** @param {{pools: any[]}} props */
function Devices({ pools }) {
  return h(
    "ul",
    { class: "devices", "aria-label": "Free devices" },
    pools.map((pool, at) =>
      h(
        "li",
        { key: at },
        h("span", { class: "strong" }, (pool.dev_type ?? "type-PCI").replace("type-", "")),
        " ",
        h("span", { class: "mono" }, `${pool.vendor_id}:${pool.product_id}`),
        pool.address ? [" ", h("span", { class: "mono second" }, pool.address)] : null,
        h("span", { class: "number" }, `${count(pool.count)} free`),
      ),
    ),
  );
}
