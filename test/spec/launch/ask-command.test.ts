import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
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

  it("asks again in a new branch of a conversation: with another text, and for another answer", async () => {
    const { conversationId } = JSON.parse((await ask("helper", "First", "--json")).stdout);
    const replaced = await ask("helper", "Second", "--conversation", conversationId, "--replace", "last");
    expect([replaced.code, replaced.stderr]).toEqual([0, ""]);
    const again = await ask("helper", "--conversation", conversationId, "--regenerate", "last", "--json");
    expect([again.code, JSON.parse(again.stdout)]).toMatchObject([0, { status: "completed", conversationId }]);
    const { agentServiceToken } = JSON.parse(readFileSync(join(service.dataDir, "credentials.json"), "utf8"));
    const path = `${service.url("agent")}/api/conversations/${conversationId}/messages`;
    const headers = { "x-agent-service-token": agentServiceToken };
    const page = (await (await fetch(path, { headers })).json()) as any;
    expect(page).toMatchObject({ branch: 3, messages: [{ parts: [{ text: "Second" }] }, {}] });
    expect(page.branches).toMatchObject([{ position: 3, branches: [1, 2, 3] }]);
    const named = await ask("helper", "Third", "--conversation", conversationId, "--replace", page.messages[0].id);
    expect(named.code).toBe(0);
    const unknown = await ask("helper", "--conversation", conversationId, "--regenerate", "none");
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining("The conversation has no such message") });
  });

  it.each([
    [["helper"], "Give the text to ask"],
    [["helper", "x", "--replace", "last"], "need --conversation"],
    [["helper", "x", "--conversation", "c", "--regenerate", "last"], "--regenerate takes no text"],
    [["helper", "--conversation", "c", "--regenerate", "last", "--replace", "last"], "not both"],
  ])("exits with 64 for %j", async (args, message) => {
    expect(await ask(...args)).toMatchObject({ code: 64, stderr: expect.stringContaining(message) });
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
