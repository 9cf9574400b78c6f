import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type PorticoProcess, runCommand, runPortico, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

// A test runs several commands, one after another.
vi.setConfig({ testTimeout: 60_000 });

const folder = temporaryFolder();
let service: PorticoProcess;
beforeAll(async () => {
  for (const [id, more] of Object.entries({ helper: {}, broken: { model: "unknown" } })) {
    mkdirSync(join(folder.path, "agents", id), { recursive: true });
    writeFileSync(join(folder.path, "agents", id, "agent.json"), JSON.stringify({ name: id, ...more }));
  }
  service = await startPortico({ cwd: folder.path, config: { shutdownGraceMs: 100 } });
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  folder.remove();
});

const ask = (...args: string[]) => runCommand(["ask", ...args], { cwd: folder.path });

describe("portico ask", () => {
  it("prints what the agent says, and goes on in a conversation", async () => {
    const first = await ask("helper", "My name is Ada.", "--json");
    const { output, conversationId, ...answer } = JSON.parse(first.stdout);
    expect([first.code, answer.status, typeof output]).toEqual([0, "completed", "string"]);
    const second = await ask("helper", "Who am I?", "--conversation", conversationId);
    expect(second.code).toBe(0);
    expect(second.stdout.trim()).not.toBe("");
    const again = JSON.parse((await ask("helper", "And now?", "--conversation", conversationId, "--json")).stdout);
    expect([again.conversationId, again.runId]).toEqual([conversationId, answer.runId]);
  });

  it("reads the question from standard input", async () => {
    const { code, stdout } = await runPortico(["ask", "helper", "-"], { cwd: folder.path, input: "Hello from a file" });
    expect([code, stdout.trim() === ""]).toEqual([0, false]);
  });

  it("says why there is no answer, and exits with 1", async () => {
    expect(await ask("broken", "Hello")).toMatchObject({ code: 1, stderr: expect.stringContaining("The turn failed: ") });
    expect(await ask("nobody", "Hello")).toMatchObject({ code: 1, stderr: expect.stringContaining("There is no such agent") });
    const none = await ask("helper", "Hello", "--conversation", "conv_none");
    expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining("Conversation not found") });
  });

  it("exits with 69 if the service cannot be reached", async () => {
    expect(await ask("helper", "Hello", "--url", "http://127.0.0.1:1")).toMatchObject({ code: 69 });
  });
});
