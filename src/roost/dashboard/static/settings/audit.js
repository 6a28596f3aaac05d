/** The check of the database: the last one, and a new one on request. */
import { useState } from "preact/hooks";
import { h } from "preact";
import { call, may } from "../page/api.js";
import { age, counted, dateTime } from "../page/format.js";
import { useLoad } from "../page/load.js";
import { Card, Problem, Table } from "../parts/elements.js";

export function Audit() {
  const status = useLoad(
    (signal) => (may("status:show") ? call("GET", "/status", { signal }) : Promise.resolve(null)),
    [],
  );
  const [findings, setFindings] = useState(/** @type {any[] | null} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const [isBusy, setBusy] = useState(false);
  const run = () => {
    setBusy(true);
    setError(null);
    call("GET", "/audit")
      .then((result) => {
        setFindings(result.findings);
        status.again();
      }, setError)
      .finally(() => setBusy(false));
  };
  if (!may("audit:show") && !may("status:show")) return null;
  const last = status.data?.audit;
  return h(
    Card,
    {
      title: "Audit of the database",
      second: last
        ? h(
            "span",
            { title: dateTime(last.at_s) },
            `Last audit ${age(last.at_s)}: ${counted(last.findings, "finding")}`,
          )
        : status.data
          ? "No audit is recorded."
          : "",
      acts: may("audit:show")
        ? h(
            "button",
            { class: "button nowrap", type: "button", disabled: isBusy, onClick: run },
            isBusy ? "Checking …" : "Run an audit",
          )
        : null,
    },
    h(
      "div",
      { role: "status" },
      findings && !findings.length ? h("div", { class: "done" }, "✓ No findings: the database is consistent.") : null,
    ),
    h(Problem, { error }),
    findings?.length
      ? h(Table, {
          label: "Findings of the audit",
          rows: findings.map((each, at) => ({ ...each, at })),
          keyOf: (row) => row.at,
          columns: [
            { title: "Check", cell: (row) => row.check },
            { title: "Object", cell: (row) => row.subject },
            { title: "Problem", cell: (row) => row.problem },
          ],
        })
      : null,
  );
}
