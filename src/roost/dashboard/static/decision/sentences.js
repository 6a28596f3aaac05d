/** A decision in plain words. */
import { amount, amountsText, count, counted } from "../page/format.js";

/** @typedef {{rule: string, reason: string, in_turn: number, alone: number, only: number}} Rule */

/**
 * The one sentence that says what is missing: the rule that alone stands between the request and most hosts.
 * @param {any} why the answer of the server
 * @returns {{strong: string, rest: string}}
 */
export function headline(why) {
  const { decision, explanation } = why;
  if (decision.outcome === "granted") return grantedHeadline(decision, explanation);
  if (!explanation) return { strong: "Refused.", rest: decision.reason };
  if (!explanation.hosts) return { strong: "There are no hosts.", rest: "" };
  if (explanation.never && !explanation.never.could_fit)
    return { strong: "It would not fit even on an empty fleet.", rest: explanation.never.reason };
  const rules = /** @type {Rule[]} */ (explanation.rules);
  const [main] = [...rules].sort((left, right) => right.only - left.only);
  if (!main || main.only === 0) return { strong: "No single rule is to blame.", rest: decision.reason };
  const rest = `${counted(main.only, "host")} ${main.only === 1 ? "meets" : "meet"} every other condition.`;
  return { strong: `The obstacle: hosts ${main.reason}.`, rest };
}

/** @param {any} decision @param {any} explanation */
function grantedHeadline(decision, explanation) {
  const left = explanation?.left;
  const hosts = [...new Set(decision.picks.map((/** @type {any} */ pick) => pick.host))];
  const strong =
    decision.count > 1
      ? `${counted(decision.count, "instance")} on ${counted(hosts.length, "host")}.`
      : `Best of ${counted(left ?? 1, "host")} that fit.`;
  const refused = explanation ? `${count(explanation.hosts - left)} of ${count(explanation.hosts)} were refused.` : "";
  return { strong, rest: refused };
}

/** `0 of 9 hosts: 7 lack 16 VCPU or more, 2 are down` → `lack 16 VCPU or more`. @param {string} reason */
export const mainReason = (reason) => /: [\d,]+ (.*?)(?:, \d[\d,]* |;|$)/.exec(reason)?.[1]?.trim() ?? "";

/** The facts of a request, as pairs for people. @param {any} request @returns {[string, string][]} */
export function requestFacts(request) {
  const { flavor } = request;
  /** @type {[string, string][]} */
  const rows = [["Flavor", flavor.name || "without a name"]];
  if (flavor.vcpus) rows.push(["VCPU", count(flavor.vcpus)]);
  if (flavor.memory_mb) rows.push(["Memory", amount("MEMORY_MB", flavor.memory_mb)]);
  const disk = flavor.root_gb + flavor.ephemeral_gb;
  if (disk) rows.push(["Disk", amount("DISK_GB", disk)]);
  for (const [name, value] of Object.entries(flavor.extra_specs)) rows.push([specName(name), String(value)]);
  for (const group of request.groups)
    rows.push([`Group ${group.suffix ?? ""}`.trim(), amountsText(group.resources ?? {})]);
  if (request.count > 1) rows.push(["Instances", count(request.count)]);
  if (request.image) rows.push(["Image", request.image.name || request.image.uuid || "given"]);
  if (request.availability_zone) rows.push(["Zone", request.availability_zone]);
  if (request.group) rows.push(["Server group", request.group]);
  for (const [name, value] of Object.entries(request.hints)) rows.push([`Hint ${name}`, [value].flat().join(", ")]);
  for (const [key, label] of [
    ["force_hosts", "Only hosts"],
    ["force_nodes", "Only nodes"],
    ["ignore_hosts", "Not on"],
  ]) {
    const names = request[/** @type {string} */ (key)];
    if (names.length) rows.push([/** @type {string} */ (label), names.join(", ")]);
  }
  if (request.destination?.host) rows.push(["Destination", request.destination.host]);
  if (request.move) rows.push(["Moves", request.move.instance_uuid]);
  rows.push(["Project", request.project_id || "none"]);
  return rows;
}

/** @param {string} name */
const specName = (name) => name.replace(/^resources:/, "");

/**
 * What a multiplier does to the order of hosts: totals with other multipliers, best first.
 * @param {{host: string, weights: {weigher: string, normalised: number, multiplier: number}[]}[]} scores
 * @param {Record<string, number>} multipliers by weigher
 */
export function rerank(scores, multipliers) {
  const rows = scores.map((score, at) => {
    const shares = score.weights.map((each) => ({
      weigher: each.weigher,
      value: each.normalised * (multipliers[each.weigher] ?? each.multiplier),
    }));
    return { host: score.host, at, shares, total: shares.reduce((sum, each) => sum + each.value, 0) };
  });
  return rows.sort((left, right) => right.total - left.total || left.at - right.at);
}
