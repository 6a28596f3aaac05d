/** Links to the views of hosts, instances, operations and decisions. */
import { h } from "preact";
import { shortId } from "../page/format.js";
import { Link } from "../page/router.js";

/** @param {string} name of a node */
export const hostLink = (name) => (name ? h(Link, { to: `/hosts/${encodeURIComponent(name)}` }, name) : "–");

/** @param {string} uuid @param {string} [name] */
export const instanceLink = (uuid, name) =>
  h(Link, { to: `/instances/${encodeURIComponent(uuid)}`, class: name ? "" : "mono nowrap" }, name || shortId(uuid));

/** @param {string} uuid @param {any} [text] */
export const operationLink = (uuid, text) =>
  h(Link, { to: `/operations/${encodeURIComponent(uuid)}`, class: text ? "" : "mono nowrap" }, text ?? shortId(uuid));

/** @param {string} uuid @param {any} [text] */
export const decisionLink = (uuid, text) =>
  h(Link, { to: `/decisions/${encodeURIComponent(uuid)}`, class: text ? "" : "mono nowrap" }, text ?? shortId(uuid));

/** The path of the plan for draining hosts. @param {string[]} nodes */
export const drainPath = (nodes) => `/drains?hosts=${encodeURIComponent(nodes.join(","))}`;
