/** What the views of work share: their tabs, badges and the progress of drains. */
import { h } from "preact";
import { counted, percent } from "../page/format.js";
import { Link } from "../page/router.js";
import { Head } from "../parts/elements.js";
import { statusText, toneOf } from "./acts.js";
import { progressOf } from "./sums.js";

const TABS = [
  { path: "/instances", name: "Instances" },
  { path: "/operations", name: "Operations" },
  { path: "/migrations", name: "Migrations" },
  { path: "/drains", name: "Drains" },
];

/** The head of a list, with links to the other lists. @param {{current: string, second: string, acts?: any}} props */
export function WorkHead({ current, second, acts }) {
  return [
    h(Head, { key: "head", title: "Work", second, acts }),
    h(
      "nav",
      { key: "tabs", class: "tabs", "aria-label": "Lists of work" },
      TABS.map(({ path, name }) =>
        h(Link, { key: path, to: path, class: "tab", "aria-current": path === current ? "page" : undefined }, name),
      ),
    ),
  ];
}

/** @param {{status: string | null, task?: string}} props */
export function StatusBadge({ status, task }) {
  return h(
    "span",
    {},
    h("span", { class: `badge ${toneOf(status)}` }, statusText(status)),
    task ? h("span", { class: "second" }, ` ${task}`) : null,
  );
}

const SIGNS = /** @type {Record<string, string>} */ ({ done: "✓ ", failed: "✕ ", open: "" });

/** The outcome of an operation; an open one can be paused or stopping. @param {{operation: any}} props */
export function OutcomeBadge({ operation }) {
  const { outcome, is_cancelled: isCancelled, drain, plan } = operation;
  const tone = outcome === "done" ? "granted" : outcome === "failed" ? "refused" : "accent";
  let text = outcome;
  if (outcome === "open")
    text = isCancelled
      ? "stopping"
      : drain?.is_paused
        ? "paused"
        : plan?.opens_at_s
          ? "waits for its window"
          : "in progress";
  else if (outcome === "failed" && isCancelled) text = "stopped";
  return h("span", { class: `badge ${tone}` }, `${SIGNS[outcome] ?? ""}${text}`);
}

/** The progress of a drain as a bar and in words. @param {{drain: any}} props */
export function DrainBar({ drain }) {
  const sums = progressOf(drain);
  const { all, moved, moving, stayed, left } = sums;
  const text = [
    `${moved} of ${counted(all, "instance")} gone`,
    moving ? `${moving} moving` : "",
    left ? `${left} to go` : "",
    stayed ? `${stayed} stayed` : "",
  ]
    .filter(Boolean)
    .join(", ");
  return h(PartsBar, { label: `Drain of ${drain.host}`, sums, text });
}

/**
 * Progress as a bar of parts, and in words.
 * @param {{label: string, sums: {all: number, moved: number, moving: number, stayed: number}, text: string}} props
 */
export function PartsBar({ label, sums, text }) {
  const { all, moved, moving, stayed } = sums;
  const share = (/** @type {number} */ number) => percent(all ? number / all : 0, 2);
  return h(
    "div",
    {},
    h(
      "div",
      {
        class: "drain-bar",
        role: "progressbar",
        "aria-label": label,
        "aria-valuemin": 0,
        "aria-valuemax": all,
        "aria-valuenow": moved + stayed,
        "aria-valuetext": text,
      },
      h("span", { class: "moved", style: { width: share(moved) } }),
      h("span", { class: "moving", style: { width: share(moving) } }),
      h("span", { class: "stayed", style: { width: share(stayed) } }),
    ),
    h("div", { class: "second" }, text),
  );
}
