import { globSync, readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { AUDIT_ACTIONS } from "../../../release/references/reference/audit-actions.ts";
import { metricReference } from "../../../release/references/reference/metrics.ts";
import { referencePages } from "../../../release/references/reference-pages.ts";
import { root } from "../../rooms/repository.ts";

const folder = resolve(root, "docs/reference");
const UPDATE = "run `npm run docs:reference`, and commit what it writes";
let pages: ReadonlyMap<string, string>;
let sources: readonly string[];
beforeAll(async () => {
  pages = await referencePages();
  sources = globSync(["{core,adapters,plugins,presets,console}/**/*.ts"], {
    cwd: root,
    exclude: (name) => name === "node_modules" || name === "dist" || name === "templates",
  }).map((file) => readFileSync(resolve(root, file), "utf8"));
});

describe("docs/reference", () => {
  it("has the pages that the code gives now", () => {
    expect(readdirSync(folder).toSorted(), UPDATE).toEqual([...pages.keys()].toSorted());
    for (const [name, text] of pages) expect(readFileSync(resolve(folder, name), "utf8"), `${name}: ${UPDATE}`).toBe(text);
  });

  it("says on every page that it is generated", () => {
    for (const [name, text] of pages) expect(text, name).toContain("generated from the code by `npm run docs:reference`");
  });

  it("lists calls with their parameters and errors, events, settings, options and limits", () => {
    const expected = {
      "agent-service.md": ["| `GET /api/audit` |", "query `since`?", "| 404 | `run_not_found` |"],
      "workflow-service.md": [
        "| `POST /api/workflow/run` |",
        "| 429 | `workflow_queue_full` |",
        "| Maximum files of a run. | 1,000 |",
      ],
      "model-proxy.md": ["| `POST /v1/messages` |", "| Bytes of a request body. | 256 MiB |"],
      "events.md": ["| `query:message` | to the client |"],
      "configuration.md": ["| `workflow.editable` |"],
      "command-line.md": ["portico token issue --provider ID [--label TEXT]"],
      "exit-codes.md": ["| 78 | The configuration is invalid"],
      "metrics.md": ["| `provider`, `state` |", "has waited for a seat in any process. The same in every process. | `kind` |"],
      "log-lines.md": ["| `callerRequestId` |"],
      "ports.md": ["## blobs", "| `put()` | Store the bytes of the source", "`WorkContext`: The services"],
      "workflow-nodes.md": ["## `human_gate`"],
      "agent-file.md": [
        "| `maxTurns` | Most model calls of a turn whose caller gives no number. Default: 20. | whole number, at least 1, at most 100 |",
      ],
      "workflow-definition.md": [
        "| `concurrency.limit` |",
        "| `schedules[].cron` |",
        "| `retry.attempts` | Total number of attempts. **Required.** |",
      ],
      "reasons.md": [
        "| `user_stop` | A caller stopped it. |",
        "| `max_turns` |",
        "| `loop_exhausted` |",
        "| `code_timeout` |",
        "| `model_unreachable` |",
      ],
    };
    for (const [name, rows] of Object.entries(expected)) for (const row of rows) expect(pages.get(name), name).toContain(row);
  });
});

describe("the actions of the audit", () => {
  it("that sources record are all described", () => {
    const recorded = sources.flatMap((text) =>
      [...text.matchAll(/\baction: "([a-z-]+\.[a-z-]+)"/g)].map(([, action = ""]) => action),
    );
    expect(new Set(recorded).size).toBeGreaterThan(20);
    expect([...new Set(recorded)].filter((action) => !Object.hasOwn(AUDIT_ACTIONS, action))).toEqual([]);
  });

  it("that are described are recorded by some source", () => {
    const all = sources.join("\n");
    const isRecorded = (action: string) => {
      const [subject] = action.split(".");
      return all.includes(`"${action}"`) || all.includes(`\`${subject}.\${`);
    };
    expect(Object.keys(AUDIT_ACTIONS).filter((action) => !isRecorded(action))).toEqual([]);
  });
});

it("lists every metric that a source names", () => {
  const named = sources.flatMap((text) => [...text.matchAll(/\bname: "(portico_[a-z_]+)"/g)].map(([, name = ""]) => name));
  expect(named.length).toBeGreaterThan(10);
  const listed = metricReference();
  expect(named.filter((name) => !listed.includes(`\`${name}\``))).toEqual([]);
});
