import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { documentAgents } from "@portico/adapters/agents/documents";
import { systemClock } from "@portico/adapters/clock/system";
import { memoryDocuments } from "@portico/adapters/documents/memory";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { type AgentClient, type AgentService, startAgentService } from "../../harness/agent-app.ts";
import { answerEvents } from "../../harness/answer-events.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { upstreamProviders } from "../../harness/looped-agents.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { events } from "../../harness/upstream-answers.ts";

const skillOf = (name: string, description = `What ${name} does.`) =>
  `---\nname: ${name}\ndescription: ${description}\nlicense: MIT\n---\nThe steps of ${name}.\n`;
const long = `${"x".repeat(39_999)}\u{1F600}end of the text`;
const files: Readonly<Record<string, string>> = {
  "clerk/skills/read-bills/SKILL.md": skillOf("read-bills", "Reads bills.\n  Use it for each bill."),
  "clerk/skills/read-bills/references/suppliers.md": "All suppliers.",
  "clerk/skills/read-bills/long.md": long,
  "clerk/skills/read-bills/huge.md": "x".repeat(1024 * 1024 + 1),
  "clerk/skills/other-name/SKILL.md": skillOf("another-name"),
  "clerk/skills/no-head/SKILL.md": "Only text.",
  "clerk/skills/Big/SKILL.md": skillOf("Big"),
  "clerk/skills/empty/notes.md": "No SKILL.md.",
  "clerk/skills/unlisted/SKILL.md": skillOf("unlisted"),
  "clerk/secret.md": "hidden-word",
  "plain/agent.json": JSON.stringify({ name: "Plain", provider: "messages", model: "echo-large" }),
};
const listed = ["read-bills", "other-name", "no-head", "Big", "empty", "missing", "linked"].map((name) => `skills/${name}`);
const clerk = {
  ...{ name: "Clerk", provider: "messages", model: "echo-large", instructions: "Be brief." },
  skills: [...listed, "../plain", "/etc"],
};

const folder = temporaryFolder();
let upstream: FakeUpstream;
let service: AgentService;
let client: AgentClient;
beforeAll(async () => {
  for (const [name, text] of Object.entries({ ...files, "clerk/agent.json": JSON.stringify(clerk) })) {
    mkdirSync(dirname(join(folder.path, name)), { recursive: true });
    writeFileSync(join(folder.path, name), text);
  }
  const skill = join(folder.path, "clerk/skills/read-bills");
  symlinkSync(join(folder.path, "clerk/secret.md"), join(skill, "link-out.md"));
  symlinkSync(join(skill, "references/suppliers.md"), join(skill, "link-in.md"));
  symlinkSync(join(folder.path, "clerk"), join(skill, "up"));
  writeFileSync(join(skill, "bytes.bin"), new Uint8Array([0xff, 0xfe, 0]));
  mkdirSync(join(folder.path, "elsewhere/linked"), { recursive: true });
  writeFileSync(join(folder.path, "elsewhere/linked/SKILL.md"), skillOf("linked"));
  symlinkSync(join(folder.path, "elsewhere/linked"), join(folder.path, "clerk/skills/linked"));
  upstream = await startFakeUpstream();
  service = await startAgentService({ agentsDir: folder.path, adapters: [...upstreamProviders(upstream.baseUrl)] });
  client = await service.connect("owner");
});
afterAll(async () => {
  await service.close();
  await upstream.close();
  folder.remove();
});
beforeEach(() => upstream.reset());

const sent = async (number: number) => JSON.parse((await (await upstream.request(number)).bytes()).toString());

async function ask(agentId: string, calls: readonly Record<string, unknown>[] = []) {
  const asked = calls.map((input, at) => ({ id: `call_${at}`, name: "ReadSkill", input }));
  if (asked.length > 0) upstream.answerNext(events(answerEvents("messages", { calls: asked })));
  const { clientRequestId } = await client.start("go", {}, { agentId });
  await client.ended(clientRequestId);
  const messages = client.of(clientRequestId).flatMap(({ data: { message } }) => message ?? []);
  const results = new Map(
    messages.filter(({ type }) => type === "tool_result").map(({ content }) => [content.callId, content.result]),
  );
  // Calls of one answer run in parallel.
  return asked.map(({ id }) => results.get(id));
}

describe("skills of an agent (Agent Skills)", () => {
  it("with a valid SKILL.md are offered: names and descriptions with the instructions, and a tool to read them", async () => {
    await ask("clerk");
    const { system, tools } = await sent(1);
    const said = JSON.stringify(system);
    expect(said).toMatch(/Be brief\..*read-bills: Reads bills\. Use it for each bill\./);
    for (const other of ["steps of", "another-name", "no-head", "Big", "unlisted", "linked"]) expect(said).not.toContain(other);
    expect(tools.map(({ name }: any) => name)).toEqual(["ReadSkill"]);
  });

  it("are counted in the summary, if they are offered", async () => {
    const { body } = await service.call("owner", "GET", "/api/agents");
    const counts = body.agents.map(({ id, skillsCount }: any) => [id, skillsCount]);
    expect(counts).toContainEqual(["clerk", 1]);
    expect(counts).toContainEqual(["plain", 0]);
  });

  it("are read by name: SKILL.md, and other files by their path in the skill", async () => {
    const [skill, file, link] = await ask("clerk", [
      { skill: "read-bills" },
      { skill: "read-bills", file: "references/suppliers.md" },
      { skill: "read-bills", file: "link-in.md" },
    ]);
    expect(skill.content[0].text).toContain("The steps of read-bills.");
    expect([file, link].map(({ content }) => content[0].text)).toEqual(["All suppliers.", "All suppliers."]);
  });

  it("are read in pieces that cut no character", async () => {
    const [first, rest] = await ask("clerk", [
      { skill: "read-bills", file: "long.md" },
      { skill: "read-bills", file: "long.md", offset: 39_999 },
    ]);
    expect(first.content[0].text).toMatch(/x\n\[17 more characters: continue with offset 39999\]$/);
    expect(rest.content[0].text).toBe("\u{1F600}end of the text");
  });

  it.each([
    { skill: "read-bills", file: "../../secret.md" },
    { skill: "read-bills", file: "link-out.md" },
    { skill: "read-bills", file: "up/secret.md" },
    { skill: "read-bills", file: "/etc/hostname" },
    { skill: "read-bills", file: "bytes.bin" },
    { skill: "read-bills", file: "huge.md" },
    { skill: "read-bills", file: "missing.md" },
    { skill: "read-bills", file: "references" },
    { skill: "linked" },
    { skill: "../plain", file: "agent.json" },
    { skill: "unlisted" },
  ])("give nothing outside of their folder, no bytes, and no text over 1 MiB: %j", async (input) => {
    const [result] = await ask("clerk", [input]);
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/no such/) }] });
    expect(JSON.stringify(result)).not.toContain("hidden-word");
  });

  it("cost an agent without skills nothing: no tool, and no words", async () => {
    await ask("plain");
    const request = await sent(1);
    expect([request.tools, request.system]).toEqual([undefined, undefined]);
  });

  it("are documents, if the agents are", async () => {
    const { "clerk/secret.md": _secret, ...texts } = files;
    const { port, close } = await openAdapter(documentAgents({}), [memoryDocuments({ id: "agents", texts }), systemClock()]);
    try {
      const read = (file: string) => port.skillFile!("clerk", "skills/read-bills", file);
      expect(await read("references/suppliers.md")).toBe("All suppliers.");
      expect([await read("missing.md"), await read("../no-head/SKILL.md")]).toEqual([undefined, undefined]);
      await expect(read("huge.md")).rejects.toMatchObject({ name: "AgentsUnavailable" });
    } finally {
      await close();
    }
  });
});
