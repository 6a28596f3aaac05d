/** A form for a request, and what it would get now; the result follows the fields. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { h } from "preact";
import { ApiError, call, may } from "../page/api.js";
import { useLoad } from "../page/load.js";
import { go } from "../page/router.js";
import { Card, Choice, Dialog, Head, Outcome, Problem } from "../parts/elements.js";
import { takeDraft } from "./draft.js";
import { Explained } from "./explained.js";
import { bodyOf, EMPTY, fieldsOf, isSimple } from "./request_form.js";

const PAUSE_MS = 400; // after the last change of a field

export function TryView() {
  const [start] = useState(takeDraft);
  const [mode, setMode] = useState(start && !isSimple(start) ? "document" : "form");
  const [fields, setFields] = useState(start && isSimple(start) ? fieldsOf(start) : EMPTY);
  const [text, setText] = useState(start ? JSON.stringify(start, null, 2) : "");
  const read = useMemo(() => readBody(mode, fields, text), [mode, fields, text]);
  const { why, error, isBusy } = useExplanation(read.body);
  if (!may("explanations:create"))
    return h(
      "div",
      {},
      h(Head, { title: "Try a request" }),
      h("div", { class: "notice" }, "Your roles do not allow dry runs."),
    );
  const change = (/** @type {string} */ value) => {
    if (value === "document" && mode === "form" && read.body) setText(JSON.stringify(read.body, null, 2));
    setMode(value);
  };
  return h(
    "div",
    {},
    h(Head, {
      title: ["Try a request ", why ? h(Outcome, { outcome: why.decision.outcome }) : null],
      second: "A dry run: it claims nothing until you place it.",
      acts:
        why?.decision.outcome === "granted" && read.body
          ? h(Place, { body: read.body, index: why.decision.check_index })
          : null,
    }),
    h(
      "div",
      { class: "stack" },
      h(
        Card,
        {},
        h(
          "div",
          { class: "bar-of-tools", style: "margin-bottom:12px" },
          h(Choice, {
            label: "Request as",
            value: mode,
            options: [
              { value: "form", name: "Form" },
              { value: "document", name: "JSON" },
            ],
            onChoose: change,
          }),
        ),
        mode === "form"
          ? h(Form, { fields, setFields })
          : h("textarea", {
              "aria-label": "Request as JSON",
              spellcheck: false,
              value: text,
              onInput: (/** @type {InputEvent} */ event) =>
                setText(/** @type {HTMLTextAreaElement} */ (event.currentTarget).value),
            }),
        h(
          "div",
          { role: "status", "aria-live": "polite", class: "second", style: "margin-top:8px" },
          isBusy ? "Deciding …" : "",
        ),
        h(Problem, { error: read.error ?? error }),
      ),
      why && !read.error
        ? h(Explained, {
            why,
            onTry: (body) => {
              setText(JSON.stringify(body, null, 2));
              setMode(isSimple(body) ? "form" : "document");
              if (isSimple(body)) setFields(fieldsOf(body));
            },
          })
        : null,
    ),
  );
}

/** @param {string} mode @param {import("./request_form.js").Fields} fields @param {string} text @returns {{body: any, error: Error | null}} */
function readBody(mode, fields, text) {
  try {
    if (mode === "form") return { body: bodyOf(fields), error: null };
    return text.trim() ? { body: JSON.parse(text), error: null } : { body: null, error: null };
  } catch (error) {
    return { body: null, error: /** @type {Error} */ (error) };
  }
}

/** Explain a body a moment after its last change. @param {any} body */
function useExplanation(body) {
  const [state, setState] = useState(
    /** @type {{why: any, error: Error | null, isBusy: boolean}} */ ({ why: null, error: null, isBusy: false }),
  );
  const text = body ? JSON.stringify(body) : "";
  useEffect(() => {
    if (!text || !may("explanations:create")) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      setState((before) => ({ ...before, isBusy: true }));
      call("POST", "/explanations", { body: JSON.parse(text), signal: stop.signal }).then(
        (why) => setState({ why, error: null, isBusy: false }),
        (error) => stop.signal.aborted || setState({ why: null, error, isBusy: false }),
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  return state;
}

/** @param {{fields: import("./request_form.js").Fields, setFields: (fields: any) => void}} props */
function Form({ fields, setFields }) {
  const flavors = useLoad((signal) => call("GET", "/flavors", { signal }), []);
  const images = useLoad((signal) => call("GET", "/images", { signal }), []);
  const zones = useLoad((signal) => call("GET", "/zones", { signal }), []);
  const groups = useLoad((signal) => call("GET", "/groups", { query: { limit: 200 }, signal }), []);
  const set = (/** @type {string} */ name) => (/** @type {Event} */ event) =>
    setFields({ ...fields, [name]: /** @type {HTMLInputElement} */ (event.currentTarget).value });
  const input = (/** @type {keyof typeof fields} */ name, /** @type {string} */ label, options = {}) =>
    h(
      "label",
      { class: "field", key: name },
      label,
      h("input", { value: fields[name], onInput: set(name), ...options }),
    );
  const list = (
    /** @type {keyof typeof fields} */ name,
    /** @type {string} */ label,
    /** @type {string} */ none,
    /** @type {{value: string, text: string}[]} */ options,
  ) =>
    h(
      "label",
      { class: "field", key: name },
      label,
      h(
        "select",
        { value: fields[name], onChange: set(name) },
        h("option", { value: "" }, none),
        options.map((each) => h("option", { key: each.value, value: each.value }, each.text)),
      ),
    );
  const lines = (/** @type {keyof typeof fields} */ name, /** @type {string} */ label) =>
    h(
      "label",
      { class: "field", key: name },
      label,
      h("textarea", { class: "low", value: fields[name], onInput: set(name), spellcheck: false }),
    );
  const names = (/** @type {any[]} */ all) => all.map((each) => ({ value: each.name, text: each.name }));
  const number = { inputMode: "numeric", size: 8 };
  return h(
    "div",
    { class: "form-grid" },
    list("flavor", "Flavor", "Amounts of my own", names(flavors.data?.flavors ?? [])),
    fields.flavor
      ? null
      : [input("vcpus", "VCPU", number), input("memory", "Memory, MiB", number), input("disk", "Disk, GiB", number)],
    input("count", "Count", number),
    list("zone", "Zone", "Any", names(zones.data?.zones ?? [])),
    list("image", "Image", "None", names(images.data?.images ?? [])),
    list(
      "group",
      "Server group",
      "None",
      (groups.data?.groups ?? []).map((/** @type {any} */ each) => ({
        value: each.uuid,
        text: each.name || each.uuid,
      })),
    ),
    input("hosts", "Only these hosts", { placeholder: "host-1, host-2" }),
    fields.flavor ? null : lines("specs", "Extra specs, KEY=VALUE"),
    lines("hints", "Hints, KEY=VALUE"),
  );
}

/** Place a request for real, if the choice is still the same. @param {{body: any, index: string | null}} props */
function Place({ body, index }) {
  const [isOpen, setOpen] = useState(false);
  const canRun = may("instances:create");
  if (!canRun && !may("decisions:create")) return null;
  return [
    h("button", { key: "b", class: "button primary", type: "button", onClick: () => setOpen(true) }, "Place it …"),
    isOpen ? h(PlaceDialog, { key: "d", body, index, canRun, onClose: () => setOpen(false) }) : null,
  ];
}

/** @param {{body: any, index: string | null, canRun: boolean, onClose: () => void}} props */
function PlaceDialog({ body, index, canRun, onClose }) {
  const [how, setHow] = useState(canRun ? "instance" : "claim");
  const [name, setName] = useState("");
  const [isStrict, setStrict] = useState(true);
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    const document = { ...body, ...(isStrict && index ? { check_index: index } : {}) };
    try {
      if (how === "instance") {
        const accepted = await call("POST", "/instances", {
          body: { ...document, name: name || "instance" },
          headers: { "idempotency-key": crypto.randomUUID?.() ?? String(Math.random()) },
        });
        go(`/operations/${accepted.operation}`);
      } else {
        const decision = await call("POST", "/decisions", { body: document });
        go(`/decisions/${decision.uuid}`);
      }
    } catch (problem) {
      setError(
        problem instanceof ApiError && problem.status === 409
          ? new Error(`${problem.message}. Look at the new dry run, and place it again.`)
          : /** @type {Error} */ (problem),
      );
      setBusy(false);
    }
  };
  return h(
    Dialog,
    { title: "Place this request", onClose },
    h(
      "form",
      { onSubmit: submit },
      canRun
        ? h(Choice, {
            label: "How",
            value: how,
            options: [
              { value: "instance", name: "Create instances" },
              { value: "claim", name: "Claim only" },
            ],
            onChoose: setHow,
          })
        : null,
      how === "instance"
        ? h(
            "label",
            { class: "field" },
            "Name",
            h("input", {
              value: name,
              required: true,
              maxLength: 255,
              onInput: (/** @type {InputEvent} */ event) =>
                setName(/** @type {HTMLInputElement} */ (event.currentTarget).value),
            }),
          )
        : h("p", { class: "second" }, "A claim holds the resources for another system, which runs the instances."),
      h(
        "label",
        {},
        h("input", { type: "checkbox", checked: isStrict, onChange: () => setStrict(!isStrict) }),
        " Only if nothing changed since: the same hosts as in this dry run",
      ),
      h(Problem, { error }),
      h(
        "div",
        { class: "dialog-acts" },
        h("button", { class: "button", type: "button", onClick: onClose }, "Cancel"),
        h("button", { class: "button primary", type: "submit", disabled: isBusy }, isBusy ? "Placing …" : "Place it"),
      ),
    ),
  );
}
