/** Stories: what happened to an instance, an operation or a host. */
import { h } from "preact";
import { age, dateTime, whenText } from "../page/format.js";
import { instanceLink } from "./links.js";

const HIDDEN = new Set(["request_id", "user", "project"]);

/** `live_migrate.done` → `live migrate done`. @param {string} kind */
export const kindText = (kind) => kind.replace(/[._]/g, " ");

/** Whether an event tells of a failure. @param {string} kind */
export const isFailure = (kind) => /\.(failed|stayed|gone|lost|cancelled)$/.test(kind);

/** The details of an event in words: `to node-2, from node-1`. @param {Record<string, string>} details */
export function detailsText(details) {
  const { host, source, problem, ...rest } = details;
  const words = Object.entries(rest)
    .filter(([name, value]) => value && !HIDDEN.has(name))
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${value.replaceAll("_", " ")}`);
  if (host) words.unshift(source ? `from ${source} to ${host}` : `on ${host}`);
  else if (source) words.unshift(`from ${source}`);
  if (problem) words.push(problem.replace(/^No valid host was found\. /, ""));
  return words.join(", ");
}

/**
 * Events, as the server gives them.
 * @param {{events: any[], isNewestFirst?: boolean, names?: Map<string, string>, label: string, operationLink?: (uuid: string, text: string) => any}} props
 */
export function Story({ events, isNewestFirst = false, names = new Map(), label, operationLink }) {
  const shown = isNewestFirst ? events : [...events].reverse();
  if (!shown.length) return h("p", { class: "second", style: "padding:0 16px 16px" }, "Nothing yet.");
  return h(
    "ol",
    { class: "events long-events", tabIndex: 0, "aria-label": `${label}, newest first` },
    shown.map((event, at) => {
      const details = event.told ?? event.details ?? {};
      const user = details.user || event.user_id;
      return h(
        "li",
        { key: `${event.at_s} ${event.kind} ${at}`, class: isFailure(event.kind) ? "refused" : "" },
        h("time", { class: "second", title: `${dateTime(event.at_s)}, ${age(event.at_s)}` }, whenText(event.at_s)),
        h(
          "span",
          {},
          event.operation && operationLink
            ? operationLink(event.operation, kindText(event.kind))
            : h("span", { class: "strong" }, kindText(event.kind)),
          " ",
          detailsText(details),
          user ? ` by ${user}` : "",
          event.instance && (names.size || event.instance_name)
            ? [" · ", instanceLink(event.instance, names.get(event.instance) ?? event.instance_name)]
            : null,
        ),
      );
    }),
  );
}
