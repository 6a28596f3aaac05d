/** A form for a request, and what it would get now; the result follows the fields. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { h } from "preact";
import { ApiError, call, may } from "../page/api.js";
import { useLoad } from "../page/load.js";
import { go } from "../page/router.js";
import { ActDialog } from "../parts/act.js";
import { Card, Choice, Head, NoRight, Outcome, Problem } from "../parts/elements.js";
import { CheckField, Input, SelectField, TextField } from "../parts/fields.js";
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
  const { error, isBusy, isCurrent, ...latest } = useExplanation(read.body);
  const why = read.body ? latest.why : null;
  if (!may("explanations:create"))
    return h("div", {}, h(Head, { title: "Try a request" }), h(NoRight, { to: "try requests" }));
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
        why?.decision.outcome === "granted" && isCurrent
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
          { class: "bar-of-tools filters" },
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
          : h(Input, {
              isLong: true,
              "aria-label": "Request as JSON",
              spellcheck: false,
              value: text,
              onText: setText,
            }),
        h(
          "div",
          { role: "status", "aria-live": "polite", class: "second below" },
          read.body && (isBusy || !isCurrent) ? "Deciding …" : "",
        ),
        h(Problem, { error: read.error ?? (read.body ? error : null) }),
      ),
      why
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

/**
 * Explain a body a moment after its last change.
 * @param {any} body
 * @returns {{why: any, error: Error | null, isBusy: boolean, isCurrent: boolean}} isCurrent: the result is for this body
 */
function useExplanation(body) {
  const [state, setState] = useState(
    /** @type {{why: any, error: Error | null, isBusy: boolean, of: string}} */ ({
      why: null,
      error: null,
      isBusy: false,
      of: "",
    }),
  );
  const text = body ? JSON.stringify(body) : "";
  useEffect(() => {
    if (!text || !may("explanations:create")) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      setState((before) => ({ ...before, isBusy: true }));
      call("POST", "/explanations", { body: JSON.parse(text), signal: stop.signal }).then(
        (why) => setState({ why, error: null, isBusy: false, of: text }),
        (error) => stop.signal.aborted || setState({ why: null, error, isBusy: false, of: text }),
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  return { ...state, isCurrent: state.of === text };
}

/** @param {{fields: import("./request_form.js").Fields, setFields: (fields: any) => void}} props */
function Form({ fields, setFields }) {
  const flavors = useLoad((signal) => call("GET", "/flavors", { signal }), []);
  const images = useLoad((signal) => call("GET", "/images", { signal }), []);
  const zones = useLoad((signal) => call("GET", "/zones", { signal }), []);
  const groups = useLoad((signal) => call("GET", "/groups", { query: { limit: 200 }, signal }), []);
  const set = (/** @type {keyof typeof fields} */ name) => (/** @type {string} */ text) =>
    setFields({ ...fields, [name]: text });
  const input = (/** @type {keyof typeof fields} */ name, /** @type {string} */ label, options = {}) =>
    h(TextField, { key: name, label, value: fields[name], onText: set(name), ...options });
  const list = (
    /** @type {keyof typeof fields} */ name,
    /** @type {string} */ label,
    /** @type {string} */ none,
    /** @type {{value: string, name: string}[]} */ options,
  ) =>
    h(SelectField, {
      key: name,
      label,
      value: fields[name],
      options: [{ value: "", name: none }, ...options],
      onChoose: set(name),
    });
  const lines = (/** @type {keyof typeof fields} */ name, /** @type {string} */ label) =>
    input(name, label, { isLong: true, class: "low", spellcheck: false });
  const names = (/** @type {any[]} */ all) => all.map((each) => ({ value: each.name, name: each.name }));
  const failed = [flavors, zones, images, groups].map((each) => each.error).find((each) => each && each.status !== 403);
  const number = { inputMode: "numeric", size: 8 };
  return h(
    "div",
    { class: "form-grid" },
    list("flavor", "Flavor", "Custom amounts", names(flavors.data?.flavors ?? [])),
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
        name: each.name || each.uuid,
      })),
    ),
    input("hosts", "Only these hosts", { placeholder: "host-1, host-2" }),
    fields.flavor ? null : lines("specs", "Extra specs, KEY=VALUE"),
    lines("hints", "Hints, KEY=VALUE"),
    h(Problem, { error: failed ?? null }),
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
  const place = async (/** @type {Record<string, string>} */ headers) => {
    const document = { ...body, ...(isStrict && index ? { check_index: index } : {}) };
    try {
      return how === "instance"
        ? await call("POST", "/instances", { body: { ...document, name }, headers })
        : await call("POST", "/decisions", { body: document, headers });
    } catch (problem) {
      if (problem instanceof ApiError && problem.status === 409)
        throw new Error(`${problem.message}. Look at the new dry run, and place it again.`, { cause: problem });
      throw problem;
    }
  };
  return h(
    ActDialog,
    {
      title: "Place this request",
      verb: "Place it",
      isReady: how === "claim" || name.trim() !== "",
      act: place,
      onClose,
      onDone: (answer) => go(how === "instance" ? `/operations/${answer.operation}` : `/decisions/${answer.uuid}`),
    },
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
      ? h(TextField, { label: "Name", value: name, required: true, maxLength: 255, onText: setName })
      : h("p", { class: "second" }, "A claim holds the resources for another system, which runs the instances."),
    h(CheckField, {
      label: "Only on the hosts of this dry run",
      isOn: isStrict,
      onChange: setStrict,
    }),
  );
}
