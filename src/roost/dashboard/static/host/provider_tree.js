/** The providers of a host as a tree; the bar of each inventory shows its holders. */
import { useMemo, useState } from "preact/hooks";
import { h } from "preact";
import { amount, amountsText, className, counted } from "../page/format.js";
import { Select } from "../parts/elements.js";
import { instanceLink } from "../parts/links.js";
import { holderName, holdersOf, holdingsOf, nest, segmentsOf } from "./tree_data.js";

/** @typedef {import("./tree_data.js").Node} Node */
/** @typedef {import("./tree_data.js").Provider} Provider */

/** @param {{tree: {providers: Provider[], provider_count: number}}} props */
export function ProviderTree({ tree }) {
  const [wanted, setWanted] = useState("");
  const roots = useMemo(() => nest(tree.providers), [tree]);
  const holders = holdersOf(tree.providers);
  const chosen = holders.some(([consumer]) => consumer === wanted) ? wanted : "";
  const choose = (/** @type {string} */ consumer) => setWanted(consumer === chosen ? "" : consumer);
  return h(
    "div",
    {},
    h(
      "div",
      { class: "bar-of-tools filters" },
      h(Select, {
        label: "Show what an instance holds",
        value: chosen,
        options: [
          { value: "", name: holders.length ? `All ${counted(holders.length, "holder")}` : "Nothing is held" },
          ...holders.map(([value, name]) => ({ value, name })),
        ],
        onChoose: setWanted,
      }),
      chosen ? h(Holdings, { providers: tree.providers, consumer: chosen }) : null,
    ),
    h(
      "ul",
      { class: "provider-tree", "aria-label": "Providers" },
      roots.map((node) => h(Branch, { key: node.provider.uuid, node, chosen, onChoose: choose })),
    ),
    tree.provider_count > tree.providers.length
      ? h(
          "p",
          { class: "second" },
          `The first ${counted(tree.providers.length, "provider")} of ${tree.provider_count}.`,
        )
      : null,
  );
}

/** @param {{providers: Provider[], consumer: string}} props */
function Holdings({ providers, consumer }) {
  const holdings = holdingsOf(providers, consumer);
  const [first] = holdings;
  if (!first) return null;
  const text = holdings.map(({ provider, holder }) => `${amountsText(holder.resources)} on ${provider}`).join("; ");
  const { holder } = first;
  return h(
    "span",
    { class: "second", role: "status" },
    holder.instance ? instanceLink(holder.instance, holderName(holder)) : holderName(holder),
    ` holds ${text}.`,
  );
}

/** @param {{node: Node, chosen: string, onChoose: (consumer: string) => void}} props */
function Branch({ node, chosen, onChoose }) {
  const { provider, children } = node;
  const classes = Object.keys(provider.inventories);
  return h(
    "li",
    {},
    h(
      "div",
      { class: "provider" },
      h(
        "div",
        { class: "provider-head" },
        h("span", { class: "mono strong" }, provider.name),
        h("span", { class: "second" }, counted(provider.holder_count, "holder")),
      ),
      classes.length
        ? h(
            "div",
            { class: "inventories" },
            classes.map((name) => h(Inventory, { key: name, provider, name, chosen, onChoose })),
          )
        : h("p", { class: "second" }, "No inventory of its own."),
      provider.traits.length
        ? h(
            "details",
            { class: "second" },
            h("summary", {}, counted(provider.traits.length, "trait")),
            h(
              "div",
              { class: "traits" },
              provider.traits.map((trait) => h("span", { key: trait, class: "mono" }, trait)),
            ),
          )
        : null,
    ),
    children.length
      ? h(
          "ul",
          {},
          children.map((child) => h(Branch, { key: child.provider.uuid, node: child, chosen, onChoose })),
        )
      : null,
  );
}

/** @param {{provider: Provider, name: string, chosen: string, onChoose: (consumer: string) => void}} props */
function Inventory({ provider, name, chosen, onChoose }) {
  const inventory = provider.inventories[name];
  const facts = [
    inventory.reserved ? `${amount(name, inventory.reserved)} reserved` : "",
    inventory.allocation_ratio === 1 ? "" : `${amount(name, inventory.total)} × ${inventory.allocation_ratio}`,
  ].filter(Boolean);
  return h(
    "div",
    { class: "inventory" },
    h("span", {}, className(name), facts.length ? h("span", { class: "second" }, ` ${facts.join(", ")}`) : null),
    h(
      "div",
      {
        class: "holder-bar",
        role: "img",
        "aria-label": `${className(name)}: ${amount(name, inventory.used)} of ${amount(name, inventory.capacity)} held`,
      },
      segmentsOf(provider, name).map((each, at) =>
        h("span", {
          key: `${each.consumer} ${at}`,
          class: `${each.kind}${chosen === "" ? "" : each.consumer === chosen ? " chosen" : " faded"}`,
          title: `${each.name}: ${amount(name, each.amount)}`,
          style: { width: `${100 * each.share}%` },
          onClick: () => each.consumer && onChoose(each.consumer),
        }),
      ),
    ),
    h(
      "span",
      { class: `number${inventory.used > inventory.capacity ? " notable" : ""}` },
      `${amount(name, inventory.used).replace(/ \D+$/, "")} of ${amount(name, inventory.capacity)}`,
    ),
  );
}
