import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compileCache } from "../../harness/compile-cache.ts";
import { failures, type OutsideWorkspace, outsideWorkspace, runTests } from "../../harness/outside-workspace.ts";
import { runCommand, startPortico } from "../../harness/portico-process.ts";
import { filesBelow, TEMPLATE_PORTS as PORTS } from "../../harness/template-files.ts";
import { readText } from "../../rooms/repository.ts";
import { readPage } from "../docs/pages.ts";

describe("what portico new makes, outside the workspace", () => {
  let outside: OutsideWorkspace;
  interface Order {
    readonly page?: string;
    readonly args: readonly string[];
    readonly name: string;
    /** What the page has its reader do next. */
    readonly next: readonly string[];
  }
  /** What each order printed. */
  const told = new Map<string, string>();
  /** What the pages for authors begin with, and adapters for the other ports. */
  const orders: Order[] = [];

  beforeAll(async () => {
    outside = outsideWorkspace([
      ...["core", "adapters", "presets", "test"].map((name) => `@portico/${name}`),
      ...["portico", "valibot", "vitest", "typescript", "@types/node"],
    ]);
    const pages = [
      "docs/writing-a-plugin.md",
      "docs/writing-an-adapter.md",
      "docs/own-model-provider.md",
      "docs/writing-a-preset.md",
    ];
    for (const page of pages) {
      const begin = (await readPage(page)).blocks.find(({ mark }) => mark?.of === "test/spec/launch/new-outside.test.ts");
      const [command = "", ...next] = begin!.text.trim().split("\n");
      const args = /^npx portico new (.*)$/.exec(command)![1]!.split(" ");
      orders.push({ page, args, name: args[1]!, next });
    }
    for (const port of PORTS.filter((each) => each !== "tools"))
      orders.push({ args: ["adapter", `cup-${port}`, "--port", port], name: `cup-${port}`, next: [] });
    for (const { args, name } of orders) {
      const { code, stdout, stderr } = await runCommand(["new", ...args], { cwd: outside.path });
      if (code !== 0) throw new Error(stderr);
      told.set(name, stdout);
    }
  });
  afterAll(() => outside.remove());

  it("goes on as the pages for authors say, with commands that it has", () => {
    for (const { page, name, next } of orders.filter((order) => order.page !== undefined)) {
      const { scripts } = JSON.parse(readFileSync(join(outside.path, name, "package.json"), "utf8")) as any;
      const said = next.map((line) => line.replace(/^[A-Z_]+=\w+ /, ""));
      const start = "start" in scripts ? ["npm start"] : [];
      expect([page, said]).toEqual([page, [`cd ${name}`, "npm test", "npm run check", ...start]]);
      expect(Object.keys(scripts)).toEqual(expect.arrayContaining(["test", "check"]));
    }
  });

  it("needs no npm install where everything is installed, as in a checkout", () => {
    expect(told.get("milk-bar")).toContain("Next:\n\n  cd milk-bar\n  npm test\n");
  });

  it("has the given name everywhere, and the versions of the command that made it", async () => {
    const { version } = JSON.parse(await readText("presets/cli/package.json")) as { version: string };
    for (const { name } of orders) {
      for (const file of filesBelow(join(outside.path, name))) {
        expect(file).not.toMatch(/sample/);
        expect(readFileSync(join(outside.path, name, file), "utf8"), `${name}/${file}`).not.toMatch(/sample-?_?name/i);
      }
      const { name: named, dependencies } = JSON.parse(readFileSync(join(outside.path, name, "package.json"), "utf8")) as any;
      expect([named, dependencies["@portico/core"]]).toEqual([name, `^${version}`]);
    }
  });

  it("compiles, by the rules that it brought along", async () => {
    // All at once: alone, each would compile the packages that it uses once more.
    const together = { extends: "./tea-house/tsconfig.json", include: orders.map(({ name }) => `${name}/**/*.ts`) };
    writeFileSync(join(outside.path, "tsconfig.json"), JSON.stringify(together));
    const { code, stdout } = await outside.run("typescript/bin/tsc", ["-p", "."]);
    expect([code, stdout]).toEqual([0, ""]);
  }, 120_000);

  it("passes its tests, with the conformance suites among them", async () => {
    const files = await runTests(outside);
    expect(failures(files)).toEqual([]);
    const passed = (file: string) =>
      files.find(({ name }) => name.endsWith(file))?.assertionResults.filter(({ status }) => status === "passed").length ?? 0;
    expect(files).toHaveLength(orders.length);
    expect(passed("milk-bar/test/preset.test.ts")).toBe(2);
    for (const { name } of files.filter(({ name }) => !name.includes("milk-bar")))
      expect(passed(name), name).toBeGreaterThanOrEqual(10);
  }, 300_000);

  it("starts, if it is a preset, and serves its agents' owner", async () => {
    const program = join(outside.path, "milk-bar/src/main.ts");
    await using service = await startPortico({ program, env: { MILK_BAR_GREETING: "Hi" } });
    expect(Object.keys(service.ready.listeners)).toEqual(["proxy", "workflow", "agent"]);
    const { agentServiceToken } = JSON.parse(service.read("credentials.json")) as { agentServiceToken: string };
    const headers = { "x-agent-service-token": agentServiceToken };
    expect((await fetch(`${service.url("agent")}/api/handshake`, { headers })).status).toBe(200);
    expect(await service.stop()).toBe(0);
  });

  it("starts, if it is a plugin, and does what its README says", async () => {
    const program = join(outside.path, "tea-house/dev/start.ts");
    await using service = await startPortico({ program, env: { TEA_HOUSE_TOKEN: "secret" } });
    expect(Object.keys(service.ready.listeners)).toEqual(["tea-house"]);
    const headers = { authorization: "Bearer secret", "content-type": "application/json" };
    const items = `${service.url("tea-house")}/items`;
    expect((await fetch(items, { method: "POST", headers, body: '{ "name": "tea" }' })).status).toBe(201);
    expect(await (await fetch(items, { headers })).json()).toMatchObject({ items: [{ name: "tea" }] });
    expect(await service.stop()).toBe(0);
  });

  it("started in a terminal, prints its address and no hints about providers", async () => {
    const child = spawn(process.execPath, ["dev/start.ts"], {
      cwd: join(outside.path, "tea-house"),
      env: { PATH: process.env["PATH"], ...compileCache, TEA_HOUSE_TOKEN: "secret", PORTICO_AUTO_PROVIDERS: "false" },
      stdio: ["ignore", "pipe", "ignore"],
    });
    let said = "";
    for await (const text of child.stdout.setEncoding("utf8") as AsyncIterable<string>) {
      said += text;
      if (said.includes("Stop with")) child.kill("SIGTERM");
    }
    expect(said).toMatch(
      /^Portico \S+ runs the preset tea-house\.\n\n  tea-house  http:\/\/127\.0\.0\.1:\d+\n\nData directory: \S+\. Stop with Ctrl-C\.\n$/,
    );
  });
});
