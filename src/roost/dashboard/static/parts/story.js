/** Stories: the events of an instance, an operation or a host. */
import { h } from "preact";
import { When } from "./elements.js";
import { detailsText, isFailure, kindText } from "./event_words.js";
import { instanceLink } from "./links.js";

/**
 * Events, as the server gives them.
 * @param {{events: any[], isNewestFirst?: boolean, names?: Map<string, string>, label: string, operationLink?: (uuid: string, text: string) => any}} props
 */
export function Story({ events, isNewestFirst = false, names = new Map(), label, operationLink }) {
  const shown = isNewestFirst ? events : [...events].reverse();
  if (!shown.length) return h("p", { class: "second card-end" }, "Nothing yet.");
  return h(
    "ol",
    { class: "events long-events", tabIndex: 0, "aria-label": `${label}, newest first` },
    shown.map((event, at) => {
      const details = event.told ?? event.details ?? {};
      const user = details.user || event.user_id;
      return h(
        "li",
        { key: `${event.at_s} ${event.kind} ${at}`, class: isFailure(event.kind) ? "refused" : "" },
        h("span", { class: "second" }, h(When, { seconds: event.at_s, isExact: true })),
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
