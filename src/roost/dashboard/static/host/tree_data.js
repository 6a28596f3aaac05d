/** The tree of providers as nested nodes, and inventories as parts of a bar. */
import { compareNames } from "../page/format.js";

/** @typedef {{consumer: string, kind: string, instance: string | null, name: string, resources: Record<string, number>}} Holder */
/** @typedef {{uuid: string, name: string, parent: string | null, traits: string[], inventories: Record<string, any>, holder_count: number, holders: Holder[]}} Provider */
/** @typedef {{provider: Provider, children: Node[]}} Node */
/** @typedef {{consumer: string, name: string, kind: string, amount: number, share: number}} Segment */

/**
 * Nest providers below their parents; one without its parent is a root.
 * @param {Provider[]} providers each after its parent
 * @returns {Node[]}
 */
export function nest(providers) {
  /** @type {Map<string, Node>} */
  const nodes = new Map();
  /** @type {Node[]} */
  const roots = [];
  for (const provider of providers) {
    const node = { provider, children: [] };
    nodes.set(provider.uuid, node);
    (nodes.get(provider.parent ?? "")?.children ?? roots).push(node);
  }
  return roots;
}

/** The name of a holder for people. @param {Holder} holder */
export function holderName(holder) {
  const name = holder.name || (holder.instance ?? holder.consumer).slice(0, 8);
  if (holder.kind === "migration") return `${name} (moving away)`;
  return holder.kind === "other" ? `consumer ${name}` : name;
}

/**
 * The parts of the bar of an inventory: one for each holder, and one for holders that the answer left out.
 * @param {Provider} provider @param {string} resourceClass
 * @returns {Segment[]}
 */
export function segmentsOf(provider, resourceClass) {
  const { capacity, used } = provider.inventories[resourceClass];
  const whole = Math.max(capacity, used, 1);
  const segments = provider.holders
    .filter((holder) => holder.resources[resourceClass])
    .map((holder) => {
      const amount = Number(holder.resources[resourceClass]);
      return { consumer: holder.consumer, name: holderName(holder), kind: holder.kind, amount, share: amount / whole };
    });
  const rest = used - segments.reduce((sum, each) => sum + each.amount, 0);
  if (rest > 0) segments.push({ consumer: "", name: "others", kind: "other", amount: rest, share: rest / whole });
  return segments;
}

/** All holders of a tree, by name. @param {Provider[]} providers @returns {[string, string][]} */
export function holdersOf(providers) {
  const names = new Map(
    providers.flatMap((provider) => provider.holders.map((holder) => [holder.consumer, holderName(holder)])),
  );
  return /** @type {[string, string][]} */ (
    [...names].sort((left, right) => compareNames(String(left[1]), String(right[1])))
  );
}

/** What a consumer holds, by provider. @param {Provider[]} providers @param {string} consumer */
export function holdingsOf(providers, consumer) {
  return providers.flatMap((provider) => {
    const holder = provider.holders.find((each) => each.consumer === consumer);
    return holder ? [{ provider: provider.name, holder }] : [];
  });
}

/** Processors as cores of threads; without siblings each processor is a core. @param {any} cell of the NUMA topology */
export function coresOf(cell) {
  const all = [...(cell.cpus ?? []), ...(cell.pcpus ?? [])].sort((left, right) => left - right);
  const left = new Set(all);
  const cores = [];
  for (const core of cell.siblings ?? []) {
    const here = core.filter((/** @type {number} */ each) => left.has(each));
    for (const each of here) left.delete(each);
    if (here.length) cores.push(here);
  }
  for (const each of left) cores.push([each]);
  return cores.sort((one, other) => one[0] - other[0]);
}
