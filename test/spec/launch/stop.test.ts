import { existsSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { httpCall } from "../../harness/http-call.ts";
import { type PorticoProcess, runCommand, runPortico, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

/** An upstream whose answers the test gives by hand, as they come in. */
const waiting: ServerResponse[] = [];
let onCall: () => void = () => {};
const upstream = createServer((request, response) => {
  request.resume();
  waiting.push(response);
  onCall();
});
const answer = { id: "c", object: "chat.completion", created: 1, model: "m", choices: [] };

beforeAll(() => new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve)));
afterAll(() => {
  upstream.closeAllConnections();
  upstream.close();
});

function start(more: {
  readonly shutdownGraceMs: number;
  readonly before?: string;
  readonly env?: Record<string, string>;
}): Promise<PorticoProcess> {
  const { shutdownGraceMs, ...options } = more;
  const baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
  const providers = [{ id: "slow", protocol: "chat-completions", baseUrl, models: ["m"] }];
  return startPortico({ ...options, hasOwnProcess: true, config: { shutdownGraceMs, providers } });
}

/** A model call that has reached the upstream, which holds its answer back. */
async function callInFlight(
  service: PorticoProcess,
): Promise<{ readonly answered: Promise<Response>; readonly upstream: ServerResponse }> {
  const token = await service.token("slow");
  const arrived = new Promise<void>((resolve) => {
    onCall = resolve;
  });
  const answered = fetch(`${service.url("proxy")}/chat/completions`, {
    method: "POST",
    headers: { "x-api-key": token, "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hello" }] }),
  });
  answered.catch(() => {});
  await arrived;
  return { answered, upstream: waiting.at(-1)! };
}

describe("stopping (open points 1)", () => {
  it("the listener of probes tells until the end that the process lives and takes nothing new (open points 11)", async () => {
    await using service = await start({ shutdownGraceMs: 60_000, env: { PORTICO_PROBES_PORT: "0" } });
    expect(Object.keys(service.ready.listeners)).toEqual(["proxy", "workflow", "agent", "probes"]);
    expect(JSON.parse(service.read("endpoints.json"))).toMatchObject({ listeners: service.ready.listeners });
    const ask = async (path: string, host = "localhost") =>
      (await httpCall(service.url("probes"), { path, headers: { host } })).status;
    expect([await ask("/readyz"), await ask("/readyz", "evil.example")]).toEqual([200, 421]);
    const call = await callInFlight(service);

    service.signal("SIGTERM");
    await expect.poll(() => fetch(service.url("agent")).catch(() => "refused")).toBe("refused");
    expect([await ask("/healthz"), await ask("/readyz")]).toEqual([200, 503]);
    call.upstream.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    expect((await call.answered).status).toBe(200);
    expect((await service.exited).code).toBe(0);
  });

  it("SIGTERM stops accepting, finishes what is in flight, and exits 0", async () => {
    await using service = await start({ shutdownGraceMs: 60_000 });
    const call = await callInFlight(service);

    service.signal("SIGTERM");
    await expect
      .poll(
        () =>
          fetch(`${service.url("agent")}/healthz`).then(
            () => "accepted",
            () => "refused",
          ),
        { timeout: 30_000 },
      )
      .toBe("refused");
    call.upstream.setHeader("content-type", "application/json").end(JSON.stringify(answer));

    expect(await (await call.answered).json()).toEqual(answer);
    expect(await service.exited).toEqual({ code: 0, signal: null });
  });

  it("requests that are unfinished after shutdownGraceMs are aborted and counted in the log, and the exit code is still 0", async () => {
    await using service = await start({ shutdownGraceMs: 50 });
    const call = await callInFlight(service);

    expect(await service.stop()).toBe(0);

    await expect(call.answered).rejects.toThrow();
    expect(service.stderr()).toMatch(/"requests":1.*Some requests did not finish in time/);
  });

  it("a second signal exits at once, and endpoints.json is still removed", async () => {
    await using service = await start({ shutdownGraceMs: 60_000 });
    const call = await callInFlight(service);

    service.signal("SIGTERM");
    await expect.poll(() => service.stderr(), { timeout: 30_000 }).toContain("Stopping");
    service.signal("SIGTERM");

    expect(await service.exited).toEqual({ code: 143, signal: null });
    await expect(call.answered).rejects.toThrow();
    expect(existsSync(join(service.dataDir, "endpoints.json"))).toBe(false);
  });

  it("under npm, which forwards Ctrl-C a second time, the repetition does not count as a second signal", async () => {
    const twice = 'process.on("SIGUSR2", () => { process.emit("SIGINT"); process.emit("SIGINT"); });';
    await using plain = await startPortico({ before: twice });
    await using underNpm = await startPortico({ before: twice, env: { npm_lifecycle_event: "start" } });

    plain.signal("SIGUSR2");
    underNpm.signal("SIGUSR2");

    expect((await plain.exited).code).toBe(130);
    expect((await underNpm.exited).code).toBe(0);
  });

  it("a signal while the start is still under way gives it up and exits 0", async () => {
    const folder = temporaryFolder();
    const early = `const on = process.on;
      process.on = function (name, listener) {
        const result = on.call(this, name, listener);
        if (name === "SIGTERM") queueMicrotask(() => process.emit("SIGTERM"));
        return result;
      };`;
    try {
      expect(await runPortico(["start", "--json"], { cwd: folder.path, before: early })).toMatchObject({ code: 0, stdout: "" });
      expect(existsSync(join(folder.path, ".portico/endpoints.json"))).toBe(false);
    } finally {
      folder.remove();
    }
  });

  it("after SIGKILL the next start on the same data directory works, with the tokens that there were", async () => {
    const folder = temporaryFolder();
    try {
      const killed = await startPortico({ cwd: folder.path, hasOwnProcess: true });
      const token = await killed.token("demo");
      await killed[Symbol.asyncDispose]();
      expect(existsSync(join(killed.dataDir, "endpoints.json"))).toBe(true);

      await using next = await startPortico({ cwd: folder.path, hasOwnProcess: true });
      expect(JSON.parse(next.read("endpoints.json"))).toMatchObject({ pid: next.pid });
      expect((await fetch(`${next.url("proxy")}/models`, { headers: { "x-api-key": token } })).status).toBe(200);
    } finally {
      folder.remove();
    }
  });

  it("an error that nothing caught is logged, and the service stops in order with exit code 70", async () => {
    const defect = 'process.on("SIGUSR2", () => { throw new Error("a defect"); });';
    await using service = await startPortico({ before: defect });

    service.signal("SIGUSR2");

    expect((await service.exited).code).toBe(70);
    expect(service.stderr()).toContain("Uncaught error");
    expect(service.stderr()).toContain("Stopping");
    expect(existsSync(join(service.dataDir, "endpoints.json"))).toBe(false);
  });

  it("a port that is taken is an error with a sentence and exit code 69, never another port", async () => {
    const { port } = upstream.address() as AddressInfo;

    const result = await runCommand(["start", "--json"], { env: { PORTICO_AGENT_PORT: String(port) } });

    expect(result).toMatchObject({ code: 69, stdout: "" });
    expect(result.stderr.trimEnd().split("\n").at(-1)).toBe(
      `agent.listen: port ${port} on 127.0.0.1 is already in use: stop the program that uses it, or set another port (with 0 the system chooses one)`,
    );
  });

  // Of `/proc` Node.js itself never comes back (`mkdirSync` with `recursive`).
  it.each([
    ["below a file", "/dev/null/data", "ENOTDIR"],
    ["a file", "/dev/null", "EEXIST"],
    ...(existsSync("/proc/self") ? [["where there are no folders", "/proc/data/deep", "ENOENT"]] : []),
    ["too long", `/tmp/${"x".repeat(300)}`, "ENAMETOOLONG"],
  ])("a data directory that cannot be made is one line and exit code 73: %s", async (_where, path, code) => {
    expect(await runCommand(["start", "--data-dir", path!])).toEqual({
      code: 73,
      stdout: "",
      stderr: expect.stringMatching(new RegExp(`^The data directory /\\S+ cannot be created \\(${code}\\)\\n$`)),
    });
  });

  it("preset proxy has the proxy's listener alone, and an IPv6 address is printed in brackets", async () => {
    await using service = await startPortico({ args: ["proxy"], env: { PORTICO_PROXY_HOST: "::1" } });

    expect(Object.keys(service.ready.listeners)).toEqual(["proxy"]);
    expect(service.url("proxy")).toMatch(/^http:\/\/\[::1\]:\d+\/v1$/);
    expect((await fetch(`${service.url("proxy")}/models`)).status).toBe(401);
  });
});
