import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate, setTimeout as wait } from "node:timers/promises";
import { createManualClock } from "@portico/adapters/clock/manual";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CALLERS, expectError } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { startProxy } from "../../harness/proxy-app.ts";
import { json } from "../../harness/upstream-answers.ts";

const { path, request } = CALLERS.messages;
const ARGUMENT = "--secret-argument-of-the-command";

describe("a credential that a command prints", () => {
  let folder: ReturnType<typeof temporaryFolder>;
  beforeEach(() => void (folder = temporaryFolder()));
  afterEach(() => folder.remove());

  /** A program that appends a line to `runs` and then runs `then`. */
  const program = (then: string, timing: { readonly forMs?: number; readonly timeoutMs?: number } = {}) => {
    const file = join(folder.path, "token.cjs");
    const runs = join(folder.path, "runs");
    writeFileSync(
      file,
      `const fs = require("node:fs"); fs.appendFileSync(${JSON.stringify(runs)}, "x"); const run = fs.statSync(${JSON.stringify(runs)}).size;\n${then}`,
    );
    return {
      setting: { command: [process.execPath, file, ARGUMENT], forMs: 60_000, timeoutMs: 20_000, ...timing },
      runs: () => (existsSync(runs) ? readFileSync(runs, "utf8").length : 0),
    };
  };
  const PRINT = `console.log("printed-token-" + run);`;

  it("runs once for many calls, and its token is used until its time is over", async () => {
    await using upstream = await startFakeUpstream();
    const clock = createManualClock();
    const { setting, runs } = program(PRINT);
    await using proxy = await startProxy({ clock, providers: [{ protocol: "messages", upstream, credential: setting }] });
    const replies = await Promise.all(Array.from({ length: 8 }, () => proxy.post(path, request("hello"))));
    expect(replies.map(({ status }) => status)).toEqual(Array(8).fill(200));
    expect(runs()).toBe(1);
    await clock.advance(61_000);
    expect((await proxy.post(path, request("hello"))).status).toBe(200);
    expect(runs()).toBe(2);
    expect([...new Set(keysOf(upstream))]).toEqual(["printed-token-1", "printed-token-2"]);
  });

  it("is renewed before its end, while calls use the present token", async () => {
    await using upstream = await startFakeUpstream();
    const clock = createManualClock();
    const { setting, runs } = program(PRINT);
    await using proxy = await startProxy({ clock, providers: [{ protocol: "messages", upstream, credential: setting }] });
    await proxy.post(path, request("hello"));
    await clock.advance(55_000);
    await proxy.post(path, request("hello"));
    expect(keysOf(upstream)).toEqual(["printed-token-1", "printed-token-1"]);
    for (let next = ""; next !== "printed-token-2"; next = String(keysOf(upstream).at(-1))) {
      await wait(5);
      await proxy.post(path, request("hello"));
    }
    expect(runs()).toBe(2);
  });

  it.each([
    ["Kubernetes' ExecCredential", `{ status: { token: "printed-token-" + run, expirationTimestamp: "2030-01-01T00:10:00Z" } }`],
    ["az account get-access-token", `{ accessToken: "printed-token-" + run, expires_on: Date.UTC(2030, 0, 1, 0, 10) / 1000 }`],
    ["OAuth", `{ access_token: "printed-token-" + run, expires_in: "600" }`],
  ])("takes the token and its end from the form of %s", async (_name, printed) => {
    await using upstream = await startFakeUpstream();
    const clock = createManualClock();
    const { setting, runs } = program(`console.log(JSON.stringify(${printed}));`, { forMs: 1_000 });
    await using proxy = await startProxy({ clock, providers: [{ protocol: "messages", upstream, credential: setting }] });
    await proxy.post(path, request("hello"));
    await clock.jump(500_000);
    await proxy.post(path, request("hello"));
    expect(runs()).toBe(1);
    await clock.advance(110_000);
    await proxy.post(path, request("hello"));
    expect(keysOf(upstream)).toEqual(["printed-token-1", "printed-token-1", "printed-token-2"]);
  });

  it.each([401, 403])("is renewed once after a %s, and a second refusal goes to the caller", async (status) => {
    await using upstream = await startFakeUpstream();
    const { setting, runs } = program(PRINT);
    const refused = json(status, { type: "error", error: { type: "authentication_error", message: "expired" } });
    upstream.answerNext(refused);
    await using proxy = await startProxy({ providers: [{ protocol: "messages", upstream, credential: setting }] });
    expect((await proxy.post(path, request("hello"))).status).toBe(200);
    expect(keysOf(upstream)).toEqual(["printed-token-1", "printed-token-2"]);
    upstream.answerAll(refused);
    expect((await proxy.post(path, request("hello"))).status).toBe(status);
    expect((await proxy.post(path, request("hello"))).status).toBe(status);
    expect(runs()).toBe(2);
  });

  it.each([
    ["ends with an error", `process.exit(3);`, "it ended with exit code 3"],
    [
      "prints too much",
      `process.stdout.write("x".repeat(1024 * 1024)); setInterval(() => {}, 1000);`,
      "it printed more than 64 KiB",
    ],
    ["prints nothing", ``, "it printed no valid token"],
    ["prints several words", `console.log("please log in");`, "it printed no valid token"],
    ["prints JSON without a token", `console.log("{}");`, "it printed no valid token"],
    ["is ended by a signal", `process.kill(process.pid, "SIGTERM"); setInterval(() => {}, 1000);`, "it was ended by SIGTERM"],
  ])("a command that %s gives 502 with the reason, and runs again after a pause", async (_name, then, reason) => {
    await using upstream = await startFakeUpstream();
    const clock = createManualClock();
    const { setting, runs } = program(`console.error(process.argv[2]);${then}`);
    await using proxy = await startProxy({ clock, providers: [{ protocol: "messages", upstream, credential: setting }] });
    const { message } = await expectError(await proxy.post(path, request("hello")), 502, "messages");
    expect(message).toBe(`Provider "main" got no credential from its command: ${reason}`);
    expect((await proxy.post(path, request("hello"))).status).toBe(502);
    expect(runs()).toBe(1);
    expect(JSON.stringify(proxy.telemetry.lines)).not.toContain(ARGUMENT);
    await clock.advance(5_001);
    await proxy.post(path, request("hello"));
    expect(runs()).toBe(2);
    expect(upstream.requests).toHaveLength(0);
  });

  it("a program that does not exist gives 502, and its name is not told", async () => {
    await using upstream = await startFakeUpstream();
    const credential = { command: ["/nowhere/no-such-program", ARGUMENT], forMs: 60_000, timeoutMs: 1_000 };
    await using proxy = await startProxy({ providers: [{ protocol: "messages", upstream, credential }] });
    const { message } = await expectError(await proxy.post(path, request("hello")), 502, "messages");
    expect(message).toBe(`Provider "main" got no credential from its command: it could not be started (ENOENT)`);
    expect(JSON.stringify(proxy.telemetry.lines)).not.toMatch(/no-such-program|secret-argument/);
  });

  it("a command that hangs is killed with the programs that it started, at its timeout and when the app closes", async () => {
    await using upstream = await startFakeUpstream();
    const clock = createManualClock();
    const pids = join(folder.path, "pids");
    const { setting } = program(
      `const child = require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "inherit" });
       fs.appendFileSync(${JSON.stringify(pids)}, process.pid + " " + child.pid + "\\n"); setInterval(() => {}, 1000);`,
    );
    const proxy = await startProxy({ clock, providers: [{ protocol: "messages", upstream, credential: setting }] });
    const started = async (count: number) => {
      while (!existsSync(pids) || readFileSync(pids, "utf8").split("\n").length <= count) await wait(10);
      return readFileSync(pids, "utf8").trim().split(/\s+/).map(Number).slice(-2);
    };
    const late = proxy.post(path, request("hello"));
    const first = await started(1);
    await clock.advance(20_001);
    const { message } = await expectError(await late, 502, "messages");
    expect(message).toContain("it ran longer than 20000 ms");
    await gone(first);
    await clock.advance(5_001);
    const cut = proxy.post(path, request("hello")).catch(() => undefined);
    const second = await started(2);
    await Promise.all([proxy.close(), cut]);
    await gone(second);
  });

  it("a caller who leaves ends only its own wait", async () => {
    await using upstream = await startFakeUpstream();
    const go = join(folder.path, "go");
    const { setting, runs } = program(
      `const timer = setInterval(() => { if (fs.existsSync(${JSON.stringify(go)})) { clearInterval(timer); ${PRINT} } }, 10);`,
    );
    await using proxy = await startProxy({ providers: [{ protocol: "messages", upstream, credential: setting }] });
    const caller = new AbortController();
    const headers = { "content-type": "application/json", "x-api-key": await proxy.token() };
    const leaving = proxy
      .call({ path, headers, body: JSON.stringify(request("leaving")), signal: caller.signal })
      .catch(() => undefined);
    while (runs() === 0) await wait(5);
    const staying = proxy.post(path, request("staying"));
    for (let turn = 0; turn < 50; turn += 1) await setImmediate();
    caller.abort();
    await leaving;
    writeFileSync(go, "");
    expect((await staying).status).toBe(200);
    expect(runs()).toBe(1);
    expect(upstream.requests).toHaveLength(1);
  });

  it("a token of it is not shown in answers of the vendor", async () => {
    await using upstream = await startFakeUpstream();
    const { setting } = program(PRINT);
    upstream.answerAll(json(400, { type: "error", error: { type: "invalid_request_error", message: "bad: printed-token-1" } }));
    await using proxy = await startProxy({ providers: [{ protocol: "messages", upstream, credential: setting }] });
    expect(await (await proxy.post(path, request("hello"))).text()).toContain("bad: ***");
  });
});

function keysOf({ requests }: FakeUpstream): unknown[] {
  return requests.map(({ headers }) => headers["x-api-key"]);
}

/** Resolves once all of these processes have ended. */
async function gone(pids: readonly number[]): Promise<void> {
  const isAlive = (pid: number) => {
    try {
      // A killed process stays as a zombie until its parent has seen its end.
      return process.kill(pid, 0) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
    } catch {
      return false;
    }
  };
  while (pids.some(isAlive)) await wait(10);
}
