import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type OutsideWorkspace, outsideWorkspace, type ReportedFile } from "../harness/outside-workspace.ts";

/** Every open takes longer than the timeouts with which vitest is called. */
const SLOW = `import { randomIds } from "@portico/adapters/ids/random";
import { defineAdapter } from "@portico/core";
import { idsConformance } from "@portico/test/conformance/ids";

const { spec } = randomIds();
const slow = defineAdapter({ ...spec, open: async (...given) => (await new Promise((done) => setTimeout(done, 60)), spec.open(...given)) });
idsConformance("slow", () => slow());
`;

/** Its errors contain the credential, and ignore the reason of a signal. */
const WRONG = `import { chatHttp } from "@portico/adapters/models/chat-http";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { defineAdapter, ports } from "@portico/core";
import { modelsConformance } from "@portico/test/conformance/models";

const wrong = (options) => {
  const { spec } = chatHttp(options);
  return defineAdapter({
    ...spec,
    async open(given, _options, scope) {
      const inner = await spec.open(given, options, scope);
      const send = async () => {
        throw new ports.ModelUnreachable(options.credential.reveal());
      };
      return { ...inner, send };
    },
  })();
};
modelsConformance("wrong", (setting) => {
  const clock = createManualClock();
  return { adapter: wrong({ ...setting, models: ["echo-large"] }), others: [manualClock({ clock })], pass: clock.advance };
}, { upstream: "http" });
`;

describe("conformance suites of a package of its own", () => {
  let outside: OutsideWorkspace;
  beforeAll(() => {
    outside = outsideWorkspace([...["core", "adapters", "test"].map((name) => `@portico/${name}`), "valibot", "vitest"]);
    writeFileSync(join(outside.path, "package.json"), '{ "type": "module" }');
  });
  afterAll(() => outside.remove());

  const run = async (name: string, text: string, ...more: string[]): Promise<ReportedFile> => {
    writeFileSync(join(outside.path, `${name}.test.ts`), text);
    const report = join(outside.path, `${name}.json`);
    const args = ["run", "--root", ".", "--reporter", "json", "--outputFile", report, `${name}.test.ts`, ...more];
    const { stderr } = await outside.run("vitest/vitest.mjs", args);
    const { testResults } = JSON.parse(readFileSync(report, "utf8")) as { testResults: ReportedFile[] };
    expect(testResults, stderr).toHaveLength(1);
    return testResults[0]!;
  };

  it("have timeouts of their own, whatever those of the package are", async () => {
    const { assertionResults } = await run("slow", SLOW, "--testTimeout", "20", "--hookTimeout", "20");
    expect(assertionResults.map(({ status }) => status)).toEqual(assertionResults.map(() => "passed"));
    expect(assertionResults.length).toBeGreaterThan(0);
  });

  it("name the rule that an adapter of models breaks", async () => {
    const { assertionResults } = await run("wrong", WRONG, "-t", "it refuses the connection|reason of a signal");
    const messages = assertionResults.flatMap(({ failureMessages }) => failureMessages).join("\n");
    expect(messages).toContain("The message of an error names no address, no credential and no secret header");
    expect(messages).toContain("A call whose signal aborts fails with the reason of the signal");
  });
});
