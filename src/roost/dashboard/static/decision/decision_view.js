/** A stored decision, by the uuid of the decision or of an instance, or by the name of an instance. */
import { useState } from "preact/hooks";
import { h } from "preact";
import { ApiError, call, may } from "../page/api.js";
import { counted, dateTime, whenText } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { go, Link } from "../page/router.js";
import { Card, Head, Loaded, Outcome, Problem } from "../parts/elements.js";
import { decisionLink, instanceLink } from "../parts/links.js";
import { Story } from "../parts/story.js";
import { keepDraft } from "./draft.js";
import { Explained } from "./explained.js";
import { mainReason } from "./sentences.js";

const STORY_SHOWN = 12;

/** @param {{parts: string[]}} props */
export function DecisionView({ parts }) {
  const uuid = parts[1] ?? "";
  const loaded = useLoad((signal) => call("GET", `/decisions/${encodeURIComponent(uuid)}/why`, { signal }), [uuid]);
  const head = h(Head, { crumbs: h(Link, { to: "/decisions" }, "Decisions"), title: "Decision" });
  return h(Loaded, { of: loaded, head, children: (why) => h(Stored, { why }) });
}

/** Show the form of view Try with a request. @param {any} body */
function tryRequest(body) {
  keepDraft(body);
  go("/try");
}

/** @param {{why: any}} props */
function Stored({ why }) {
  const { decision, request } = why;
  const name = request.flavor.name || "request";
  const host = decision.picks[0]?.host;
  const acts = may("explanations:create")
    ? [
        h(
          "button",
          { key: "again", class: "button", type: "button", onClick: () => tryRequest(why.body) },
          "Try with changes",
        ),
        h(CopyLink, { key: "copy" }),
      ]
    : h(CopyLink, {});
  return h(
    "div",
    {},
    h(Head, {
      crumbs: [h(Link, { to: "/decisions" }, "Decisions"), " / ", h("span", { class: "mono" }, decision.uuid)],
      title: [
        host && decision.count === 1 ? `${name} → ${host} ` : `${name} `,
        h(Outcome, { outcome: decision.outcome }),
      ],
      second: [dateTime(decision.decided_at_s), counted(decision.count, "instance"), request.project_id]
        .filter(Boolean)
        .join(" · "),
      acts,
    }),
    h(Explained, {
      why,
      ...(may("explanations:create") ? { onTry: tryRequest } : {}),
      side: [
        h(Replay, { key: "replay", uuid: decision.uuid }),
        h(InstanceCard, { key: "story", decision }),
        h(Similar, { key: "similar", decision }),
      ],
    }),
  );
}

function CopyLink() {
  const [isCopied, setCopied] = useState(false);
  if (!navigator.clipboard) return null; // over plain HTTP, except on this machine
  const copy = () =>
    void navigator.clipboard.writeText(location.href).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  return h("button", { class: "button", type: "button", onClick: copy }, isCopied ? "Link copied" : "Copy the link");
}

/** Decide again from the stored state: the same result is the proof of the evidence. @param {{uuid: string}} props */
function Replay({ uuid }) {
  const [result, setResult] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  if (!may("decisions:replay")) return null;
  const run = () => {
    setBusy(true);
    setError(null);
    call("POST", `/decisions/${uuid}/replay`, { body: {} })
      .then(setResult, setError)
      .finally(() => setBusy(false));
  };
  return h(
    Card,
    { title: "Replay", second: "Decide it again, from the state at that time." },
    result
      ? h(
          "p",
          {},
          h(
            "span",
            { class: `badge ${result.is_same ? "granted" : "refused"}` },
            result.is_same ? "✓ Replayed: the same" : `✕ Differs in ${result.fields.join(", ")}`,
          ),
        )
      : h(
          "p",
          {},
          h(
            "button",
            { class: "button", type: "button", disabled: isBusy, onClick: run },
            isBusy ? "Replaying …" : "Replay",
          ),
        ),
    h(Problem, { error }),
  );
}

/** The first instance of the decision, with its story. @param {{decision: any}} props */
function InstanceCard({ decision }) {
  const uuid = decision.picks[0]?.instance_uuid;
  const loaded = useLoad(
    (signal) =>
      uuid && may("instances:show")
        ? call("GET", `/instances/${uuid}`, { signal }).catch((error) => {
            if (error instanceof ApiError && error.status === 404) return null;
            throw error;
          })
        : Promise.resolve(null),
    [uuid],
  );
  const instance = loaded.data;
  if (!instance) return null;
  return h(
    Card,
    {
      title: ["Instance ", instanceLink(instance.uuid, instance.name)],
      flush: true,
      second: instance.status
        ? `${instance.status}${instance.host ? ` on ${instance.host}` : ""}`
        : `a claim on ${instance.host}`,
    },
    h(Story, { events: instance.story.slice(-STORY_SHOWN), label: "Story of the instance" }),
  );
}

/** Other refusals for the same reason. @param {{decision: any}} props */
function Similar({ decision }) {
  const reason = decision.outcome === "refused" ? mainReason(decision.reason) : "";
  const loaded = useLoad(
    (signal) =>
      reason
        ? call("GET", "/decisions", { query: { refused: true, reason, limit: 6 }, signal })
        : Promise.resolve(null),
    [reason],
  );
  const others = (loaded.data?.decisions ?? []).filter((/** @type {any} */ each) => each.uuid !== decision.uuid);
  if (!reason || !others.length) return null;
  return h(
    Card,
    { title: "Refused for the same reason", second: reason },
    h(
      "ul",
      { class: "news" },
      others
        .slice(0, 5)
        .map((/** @type {any} */ each) =>
          h(
            "li",
            { key: each.uuid },
            h("span", { "aria-hidden": "true" }, "✕"),
            decisionLink(each.uuid),
            h("span", { class: "second" }, whenText(each.decided_at_s)),
          ),
        ),
    ),
  );
}
