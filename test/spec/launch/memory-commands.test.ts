import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type PorticoProcess, runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

// A test runs several commands, one after another, each in a process of its own.
vi.setConfig({ testTimeout: 120_000 });

const folder = temporaryFolder();
let service: PorticoProcess;
beforeAll(async () => {
  mkdirSync(join(folder.path, "agents/keeper"), { recursive: true });
  writeFileSync(join(folder.path, "agents/keeper/agent.json"), JSON.stringify({ name: "Keeper", memory: true }));
  service = await startPortico({ cwd: folder.path, config: {} });
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder.remove();
});
const memory = (...args: string[]) => runCommand(["memory", ...args], { cwd: folder.path });

it("portico memory writes, lists, shows and erases what agents remember of the instance's owner", async () => {
  expect(await memory()).toMatchObject({ code: 0, stdout: "", stderr: "Nothing is remembered.\n" });
  expect((await memory("write", "keeper", "My likes", "Tea")).stdout).toBe("The document is created.\n");
  expect((await memory("write", "keeper", "My likes", "Tea with milk")).stdout).toBe("The document is replaced.\n");
  expect((await memory("show", "keeper", "My likes")).stdout).toBe("Tea with milk");
  expect((await memory("list", "keeper")).stdout).toMatch(/^NAME +CHARACTERS +WRITTEN BY +CHANGED *\nMy likes +13 +user +\d/);
  expect(JSON.parse((await memory("list", "--json")).stdout)).toMatchObject([{ agentId: "keeper", documents: 1 }]);
  expect(await memory("erase", "keeper")).toMatchObject({ code: 64, stderr: expect.stringContaining("--yes") });
  expect((await memory("erase", "keeper", "My likes")).stdout).toBe("Erased: 1 document.\n");
  expect(await memory("show", "keeper", "My likes")).toMatchObject({ code: 1, stderr: expect.stringContaining("no document") });
  expect((await memory("erase", "keeper", "--yes")).stdout).toBe("Erased: 0 documents.\n");
});

it("portico memory says why the service refuses", async () => {
  expect((await memory("write", "unknown", "a", "b")).stderr).toContain("does not switch its memory on");
  expect((await memory("write", "keeper", "../a", "b")).code).toBe(1);
  expect((await memory("show", "..", "a")).code).not.toBe(0);
});
