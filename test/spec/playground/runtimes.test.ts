import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { findRuntime, type RuntimeName } from "../../harness/runtimes.ts";

const CHILD = resolve(import.meta.dirname, "../../harness/embedding-child.ts");

const PRINTED = `\
# fetch
host: a page of the host's own
proxy: You said: Hello (This is the offline demo model.)
notebook: {"notes":[]}
events: 201, written
# hono
host: a page of the host's own
proxy: You said: Hello (This is the offline demo model.)
notebook: {"notes":[]}
agent: Hello
events: 201, written
# express
host: a page of the host's own
proxy: You said: Hello (This is the offline demo model.)
notebook: {"notes":[]}
agent: Hello
events: 201, written
# crossws
host: a page of the host's own
proxy: You said: Hello (This is the offline demo model.)
notebook: {"notes":[]}
agent: Hello
events: 201, written
# model calls with undici: echo: Hello there
# model calls with fetch: echo: Hello there
`;

describe.each<RuntimeName>(["deno", "bun"])("on %s", (name) => {
  const runtime = findRuntime(name);

  it.skipIf(!runtime)("hosts embed surfaces as on Node.js, and model calls leave with undici and with fetch", async () => {
    await using upstream = await startFakeUpstream();
    const [program, ...before] = runtime!.command;
    const env = { PATH: process.env["PATH"], HOME: process.env["HOME"], ...runtime!.env };
    // A child that hangs does not outlive the test.
    const options = { env, timeout: 50_000, killSignal: "SIGKILL" } as const;
    const { stdout } = await promisify(execFile)(program, [...before, CHILD, upstream.baseUrl], options);
    expect(stdout).toBe(PRINTED);
  });
});
