import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { PROTOCOLS } from "../harness/callers.ts";
import { type CodingTool, installCodingTool, readCodingTools } from "../harness/coding-tools.ts";
import { type FakeUpstream, startFakeUpstream } from "../harness/fake-upstream.ts";
import { temporaryFolder } from "../harness/portico-process.ts";
import { type ProxyApp, startProxy } from "../harness/proxy-app.ts";
import { NOTE, readingModel } from "../harness/reading-model.ts";
import { recordCodingTool } from "./record-requests.ts";

const run = promisify(execFile);
/** A tool that waits for a network that is not there needs half a minute for it. */
const TOOL_MS = 120_000;
const INSTALL_MS = 600_000;

// The commands of docs/guides/coding-tools.md, on the real tools. Only the address is another one, since the port may be taken.
describe.each(readCodingTools())("$name $version", (tool: CodingTool) => {
  let commands: string | undefined;
  beforeAll(async () => {
    commands = await installCodingTool(tool);
  }, INSTALL_MS);

  describe.each(PROTOCOLS)("with a provider of %s", (protocol) => {
    let upstream: FakeUpstream;
    let proxy: ProxyApp;
    beforeAll(async () => {
      upstream = await startFakeUpstream({ models: ["demo"] });
      proxy = await startProxy({ providers: [{ protocol, upstream, models: ["demo"] }] });
    });
    beforeEach(() => upstream.reset());
    afterAll(async () => {
      await proxy.close();
      await upstream.close();
    });

    it("reads a file for the model, and says what the model said", { timeout: TOOL_MS }, async ({ skip }) => {
      if (commands === undefined) return skip(`npm cannot install ${tool.package}@${tool.version}`);
      const folder = temporaryFolder();
      try {
        const [work, home] = ["work", "home"].map((name) => join(folder.path, name)) as [string, string];
        for (const each of [work, home]) mkdirSync(each);
        writeFileSync(join(work, "NOTES.md"), NOTE);
        upstream.answerAll(readingModel(join(work, "NOTES.md")));
        const typed = tool.commands.replaceAll("http://127.0.0.1:49152", new URL(proxy.url).origin);
        const env = {
          ...QUIET,
          PATH: `${commands}:${process.env["PATH"]}`,
          HOME: home,
          TERM: "dumb",
          TOKEN: await proxy.token(),
        };
        const typing = run("bash", ["-e", "-c", typed], { cwd: work, env, timeout: TOOL_MS });
        typing.child.stdin?.end();
        const { stdout } = await typing;
        expect(stdout).toContain(`It says: ${NOTE}`);
        await recordCodingTool(tool, protocol, upstream.requests, folder.path);
      } finally {
        folder.remove();
      }
    });
  });
});

/** Settings that prevent the tools from calling other services than the proxy. */
const QUIET = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  OPENCODE_DISABLE_AUTOUPDATE: "1",
  OPENCODE_DISABLE_MODELS_FETCH: "1",
  CONTINUE_TELEMETRY_ENABLED: "0",
  CLINE_TELEMETRY_DISABLED: "1",
  COPILOT_OFFLINE: "true",
  PI_OFFLINE: "1",
};
