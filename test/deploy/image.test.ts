import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BuiltImage, buildImage, hasBuildah, type RunningContainer, runImage } from "../harness/buildah.ts";
import { freePort } from "../harness/ports.ts";

if (!hasBuildah()) console.warn("The image is not built: that needs buildah, on Debian, as root");

const SURFACES = ["proxy", "workflow", "agent", "probes"] as const;
const BUILD_MS = 900_000;

describe.skipIf(!hasBuildah())("the image of deploy/container/Dockerfile", () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-image-"));
  const data = join(folder, "data");
  let image: BuiltImage;
  let env: Record<string, string>;
  beforeAll(async () => {
    image = await buildImage(folder);
    // The ports of the image may be taken on this machine.
    const ports = await Promise.all(
      SURFACES.map(async (surface) => [`PORTICO_${surface.toUpperCase()}_PORT`, `${await freePort()}`]),
    );
    env = { ...Object.fromEntries(ports), PORTICO_AUTO_PROVIDERS: "false", PORTICO_LOG_FORMAT: "json" };
  }, BUILD_MS);
  afterAll(async () => {
    await image?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A container whose service is ready. */
  const start = async (): Promise<RunningContainer> => {
    const container = runImage(image, { data, env });
    let hasEnded = false;
    void container.ended.then(() => (hasEnded = true));
    await expect.poll(() => hasEnded || container.stderr().includes('"Started"'), { timeout: 60_000 }).toBe(true);
    if (hasEnded) throw new Error(container.stderr());
    return container;
  };
  const url = (surface: (typeof SURFACES)[number]) => `http://127.0.0.1:${env[`PORTICO_${surface.toUpperCase()}_PORT`]}`;
  const inside = async (...command: string[]) => {
    const container = runImage(image, { data, env, command });
    const code = await container.ended;
    return { code, stdout: container.stdout(), stderr: container.stderr() };
  };
  const isHealthy = async () => {
    const [, ...check] = image.config.Healthcheck.Test;
    const container = runImage({ ...image, config: { ...image.config, Entrypoint: [] } }, { data, env, command: check });
    return (await container.ended) === 0;
  };

  it("has nothing of the tests, the sources and the compiler, and no file that its user could change", async () => {
    const top = join(image.path, "opt/portico");
    expect(readdirSync(top).toSorted()).toEqual(["healthcheck.mjs", "node_modules", "warm-up.mjs"]);
    const packages = readdirSync(join(top, "node_modules"));
    for (const left of ["typescript", "vitest", "rolldown", "vite", "svelte"]) expect(packages).not.toContain(left);
    expect(readdirSync(join(top, "node_modules/@portico")).toSorted()).toEqual([
      "adapters",
      "cluster",
      "console",
      "core",
      "mcp",
      "operator",
      "plugins",
      "presets",
      "workflow-nodes",
    ]);
    const find = promisify(execFile)("find", [top, "-user", "1000", "-not", "-path", "*/.cache*"]);
    expect((await find).stdout).toBe("");
    expect(image.bytes.whole - image.bytes.base).toBeLessThan(80 * 1024 ** 2);
  });

  it("runs as its user, as the first process, on a root file system that it cannot write, and is healthy", async () => {
    await using container = await start();
    const status = readFileSync(`/proc/${container.pid}/status`, "utf8");
    expect(status).toMatch(/^Uid:\t1000\t1000\t1000\t1000$/m);
    expect(status).toMatch(/^NSpid:\t\d+\t1$/m);
    const mounts = readFileSync(`/proc/${container.pid}/mounts`, "utf8")
      .split("\n")
      .filter((line) => line.split(" ")[1] === "/");
    expect(mounts.at(-1)?.split(" ")[3]?.split(",")).toContain("ro");
    expect(await isHealthy()).toBe(true);
  });

  it("serves every surface, and the web console, and the healthcheck fails without the service", async () => {
    expect(await isHealthy()).toBe(false);
    await using _container = await start();
    const ask = async (address: string, init?: RequestInit) => (await fetch(address, init)).status;
    for (const surface of ["workflow", "agent", "probes"] as const) expect(await ask(`${url(surface)}/readyz`)).toBe(200);
    expect(await ask(`${url("agent")}/`)).toBe(200);
    const { agentServiceToken } = JSON.parse(readFileSync(join(data, "credentials.json"), "utf8"));
    expect(await ask(`${url("agent")}/api/agents`, { headers: { "x-agent-service-token": agentServiceToken } })).toBe(200);
    const issued = await inside("token", "issue", "--provider", "demo");
    expect([issued.code, issued.stderr]).toEqual([0, ""]);
    const headers = { authorization: `Bearer ${issued.stdout.trim()}`, "content-type": "application/json" };
    const body = JSON.stringify({ model: "demo", max_tokens: 10, messages: [{ role: "user", content: "Hello" }] });
    expect(await ask(`${url("proxy")}/v1/messages`, { method: "POST", headers, body })).toBe(200);
  });

  it("keeps what it was given in its one volume, for the next container", async () => {
    const read = () => JSON.parse(readFileSync(join(data, "credentials.json"), "utf8"));
    const before = read();
    const file = join(folder, "a.png");
    writeFileSync(
      file,
      Buffer.from("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000049454e44ae426082", "hex"),
    );
    const headers = { "x-agent-service-token": before.agentServiceToken };
    const stop = async (container: RunningContainer) => {
      process.kill(container.pid, "SIGTERM");
      return container.ended;
    };
    let mediaId: string;
    {
      await using container = await start();
      const form = new FormData();
      form.append("file", new Blob([readFileSync(file)], { type: "image/png" }), "a.png");
      const uploaded = await fetch(`${url("agent")}/api/media/upload`, { method: "POST", headers, body: form });
      ({ mediaId } = (await uploaded.json()) as { mediaId: string });
      // The first process gets no signal that it does not handle.
      expect(await stop(container)).toBe(0);
      expect(container.stderr()).toContain('"Stopping"');
    }
    expect(statSync(join(data, "files/media", mediaId)).uid).toBe(1000);
    expect(readdirSync(data)).not.toContain("endpoints.json");
    await using container = await start();
    expect(read()).toEqual(before);
    const links = await fetch(`${url("agent")}/api/media/access-urls`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ mediaIds: [mediaId] }),
    });
    const { items } = (await links.json()) as { items: { url: string }[] };
    const answer = await fetch(url("agent") + items[0]!.url);
    expect((await answer.bytes()).length).toBe(statSync(file).size);
    expect(await stop(container)).toBe(0);
  });

  it("reads its code compiled", async () => {
    const { NODE_COMPILE_CACHE: _none, ...rest } = env;
    const container = runImage(image, { data, env: { ...rest, NODE_DEBUG_NATIVE: "COMPILE_CACHE" }, command: ["--version"] });
    expect(await container.ended).toBe(0);
    const lines = container.stderr().split("\n");
    expect(lines.filter((line) => /reading cache from .* success/.test(line)).length).toBeGreaterThan(5);
  });
});
