import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

const portOf = (url: string) => Number(new URL(url).port);

/** Listens on a port of this machine until it is disposed of. */
async function occupy(port = 0) {
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  const { port: taken } = server.address() as { port: number };
  return { port: taken, [Symbol.asyncDispose]: async () => void (await once(server.close(), "close")) };
}

describe("ports that the system assigns (open points 1)", () => {
  it("are the same at later starts", async () => {
    using folder = disposable();
    const urls: unknown[] = [];
    for (let start = 0; start < 2; start++) {
      await using service = await startPortico({ cwd: folder.path });
      urls.push(service.ready.listeners);
    }
    expect(urls[1]).toEqual(urls[0]);
  });

  it("are replaced for one start, with a warning, if another program uses them, and used again afterwards", async () => {
    using folder = disposable();
    let first: number;
    {
      await using service = await startPortico({ cwd: folder.path, args: ["proxy"] });
      first = portOf(service.url("proxy"));
    }
    {
      await using _taken = await occupy(first);
      await using service = await startPortico({ cwd: folder.path, args: ["proxy"], hasOwnProcess: true });
      const port = portOf(service.url("proxy"));
      expect(port).not.toBe(first);
      await expect
        .poll(() => service.stderr())
        .toContain(
          `"surface":"proxy","earlier":${first},"port":${port},"msg":"The proxy listener cannot use the port of earlier starts"`,
        );
    }
    await using service = await startPortico({ cwd: folder.path, args: ["proxy"] });
    expect(portOf(service.url("proxy"))).toBe(first);
  });

  it("are assigned again at each start for a setting of port 0, which does not change what is stored", async () => {
    using folder = disposable();
    let first: number;
    {
      await using service = await startPortico({ cwd: folder.path, args: ["proxy"] });
      first = portOf(service.url("proxy"));
    }
    {
      await using service = await startPortico({ cwd: folder.path, args: ["proxy"], env: { PORTICO_PROXY_PORT: "0" } });
      expect(portOf(service.url("proxy"))).not.toBe(first);
    }
    await using service = await startPortico({ cwd: folder.path, args: ["proxy"] });
    expect(portOf(service.url("proxy"))).toBe(first);
  });

  it("are assigned again if the file with them is damaged", async () => {
    using folder = disposable();
    for (const damage of ["{", '{"proxy":0}', '{"proxy":"4100"}', ""]) {
      {
        await using service = await startPortico({ cwd: folder.path, args: ["proxy"] });
        expect(JSON.parse(readFileSync(join(folder.path, ".portico", "ports.json"), "utf8"))).toEqual({
          proxy: portOf(service.url("proxy")),
        });
      }
      writeFileSync(join(folder.path, ".portico", "ports.json"), damage);
    }
  });
});

describe("portico start --port", () => {
  it("sets the port of a preset with one area", async () => {
    const { port } = await freed();
    await using service = await startPortico({ args: ["agent", "--port", String(port)] });
    expect(portOf(service.url("agent"))).toBe(port);
  });

  it("is refused for a preset with several areas, and for a value that is not a port", async () => {
    using folder = disposable();
    const several = await runCommand(["start", "local", "--port", "4100"], { cwd: folder.path });
    expect([several.code, several.stderr]).toEqual([
      64,
      expect.stringContaining("--port is for presets with one area (proxy, workflow, agent)"),
    ]);
    const text = await runCommand(["start", "proxy", "--port", "many"], { cwd: folder.path });
    expect([text.code, text.stderr]).toEqual([
      78,
      expect.stringContaining('proxy.listen.port: expected a whole number from 0 to 65535, found "many" (flag --port)'),
    ]);
  });
});

/** A port that was free a moment ago. */
async function freed() {
  await using taken = await occupy();
  return { port: taken.port };
}

function disposable() {
  const { path, remove } = temporaryFolder();
  return { path, [Symbol.dispose]: remove };
}
