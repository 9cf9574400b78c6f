import { type Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** The adapter under test, and what it needs. */
export interface AgentsUnderTest {
  /** Has no agent yet. */
  readonly adapter: Adapter<typeof ports.agents>;
  readonly others: readonly Adapter[];
  /** As a person does it: write an agent's `agent.json`; null makes its folder without one; undefined removes both. */
  edit(id: string, text: string | null | undefined): unknown;
  /** Make an agent's file one that is no text; left out where that cannot be. */
  spoil?(id: string): unknown;
  /** Write another file of an agent's folder; left out if the adapter has no skills. */
  writeFile?(id: string, path: string, text: string): unknown;
  /** Called after the test. */
  close?(): Promise<void>;
}

/** The law of the agents port, as vitest tests. `make` is called once per test. */
export function agentsConformance(name: string, make: () => AgentsUnderTest | Promise<AgentsUnderTest>): void {
  describeSuite(`agents port: ${name}`, () => {
    let made: AgentsUnderTest;
    let opened: OpenAdapter<ports.Agents>;
    let agents: ports.Agents;
    beforeEach(async () => {
      made = await make();
      opened = await openAdapter(made.adapter, made.others);
      agents = opened.port;
    });
    afterEach(async () => {
      await opened.close();
      await made.close?.();
    });

    const write = (id: string, value: object) => made.edit(id, JSON.stringify(value));
    /** Changes that another program makes are seen soon. */
    const soon = (holds: () => unknown) => vi.waitFor(holds, { timeout: 30_000, interval: 20 });

    it("lists the same agents without their git states, for callers that list often", async () => {
      await write("plain", { name: "Plain" });
      const [agent] = await agents.list({ withGit: false });
      expect(agent).toEqual({ ...(await agents.find("plain")), git: { hasGit: false } });
    });

    it("names the keys of a file that have no meaning, and reads the rest", async () => {
      await write("typo", {
        name: "Typo",
        temprature: 1,
        maxTurns: 3,
        ui: {},
        webhooks: {},
        avatar: "x",
        $schema: "agent.schema.json",
      });
      const found = await agents.find("typo");
      expect(found).toMatchObject({ unknownKeys: ["temprature"], definition: { name: "Typo", maxTurns: 3 } });
      expect(found).not.toHaveProperty("metadataError");
    });

    it("has no agents without documents", async () => {
      expect(await agents.list()).toEqual([]);
      expect(await agents.find("nobody")).toBeUndefined();
    });

    it("reads an agent, with what its file does not say as the port says", async () => {
      await write("plain", { name: "Plain" });
      const definition = { name: "Plain", engine: "loop", tools: [], skills: [], core: false };
      expect(await agents.find("plain")).toEqual({ id: "plain", definition, git: { hasGit: false } });
    });

    it("reads everything that a file says, and leaves alone what it does not know", async () => {
      const definition = {
        name: "Full",
        description: "Does all",
        engine: "own",
        provider: "main",
        model: "m-large",
        instructions: "Be brief.",
        onMaxTokens: "continue",
        tools: ["SendUserMessage", "files/read"],
        skills: ["skills/a.md"],
        heartbeat: { enabled: true, everyMs: 60_000, prompt: "Look around." },
        core: true,
        ui: { color: "red" },
        avatar: "face.png",
        webhooks: { enabled: false, events: {} },
      };
      await write("full", { ...definition, somebodyElses: [1, 2, 3] });
      expect((await agents.find("full"))?.definition).toEqual(definition);
      expect((await agents.find("full"))?.metadataError).toBeUndefined();
    });

    it.each([
      ["missing", "a folder without agent.json", null],
      ["invalid_json", "a text that is no JSON", "{"],
      ["invalid_json", "an empty file", ""],
      ["invalid_shape", "a list", "[]"],
      ["invalid_shape", "an object without a name", "{}"],
    ])("lists an agent with metadataError %s, and fallbacks: %s", async (metadataError, _what, text) => {
      await made.edit("broken", text);
      await write("whole", { name: "Whole" });
      const listed = await agents.list();
      expect(listed.map(({ id }) => id)).toEqual(["broken", "whole"]);
      expect(listed[0]).toMatchObject({ metadataError, definition: { name: "broken", engine: "loop", tools: [], core: false } });
      expect(listed[1]?.metadataError).toBeUndefined();
    });

    it.each([
      ["tools", "all"],
      ["tools", [1]],
      ["engine", ""],
      ["model", 3],
      ["heartbeat", { enabled: "yes" }],
      ["core", "true"],
    ])("takes a wrong %s (%j) for absent, uses the rest, and tells invalid_shape", async (field, value) => {
      await write("odd", { name: "Odd", description: "kept", [field]: value });
      expect(await agents.find("odd")).toMatchObject({
        metadataError: "invalid_shape",
        definition: { name: "Odd", description: "kept", engine: "loop", tools: [], core: false },
      });
    });

    it("lists by id, in the order of the ids' bytes", async () => {
      for (const id of ["b", "a", "B", "_", "a-1", "10", "9"]) await write(id, { name: id });
      expect((await agents.list()).map(({ id }) => id)).toEqual(["10", "9", "B", "_", "a", "a-1", "b"]);
    });

    it.each(["", "..", "a/b", "a b", "x".repeat(65), "a.b", "ä", "__proto__/x", "a\0"])("has no agent called %j", async (id) => {
      expect(await agents.find(id)).toBeUndefined();
    });

    it("sees what people change, add and remove", async () => {
      await write("a", { name: "Before" });
      expect((await agents.find("a"))?.definition.name).toBe("Before");
      await write("a", { name: "After" });
      await soon(async () => expect((await agents.find("a"))?.definition.name).toBe("After"));
      await write("b", { name: "New" });
      await soon(async () => expect((await agents.list()).map(({ id }) => id)).toEqual(["a", "b"]));
      await made.edit("a", undefined);
      await soon(async () => expect(await agents.find("a")).toBeUndefined());
      await soon(async () => expect((await agents.list()).map(({ id }) => id)).toEqual(["b"]));
    });

    describe("files of skills", () => {
      const file = (skill: string, path: string, id = "clerk") => agents.skillFile!(id, skill, path);
      beforeEach(async (test) => {
        if (!made.writeFile) return test.skip("these agents have no skills");
        await write("clerk", { name: "Clerk", skills: ["skills/read-bills"] });
        await made.writeFile("clerk", "skills/read-bills/SKILL.md", "Read them.");
        await made.writeFile("clerk", "skills/read-bills/references/ä.md", "Ünlü");
        await made.writeFile("clerk", "skills/other/SKILL.md", "Not these.");
        await made.writeFile("clerk", "notes.md", "Own notes.");
      });

      it("are read by the paths of the skill and the file, as they are now", async () => {
        expect(await file("skills/read-bills", "SKILL.md")).toBe("Read them.");
        expect(await file("skills/read-bills", "references/ä.md")).toBe("Ünlü");
        await made.writeFile!("clerk", "skills/read-bills/SKILL.md", "Read them twice.");
        await soon(async () => expect(await file("skills/read-bills", "SKILL.md")).toBe("Read them twice."));
      });

      it.each([
        ["skills/read-bills", "missing.md"],
        ["skills/read-bills", "../other/SKILL.md"],
        ["skills/read-bills", "../../notes.md"],
        ["skills/read-bills", "references"],
        ["skills/read-bills", ""],
        ["skills/read-bills", "/etc/hostname"],
        ["../clerk/skills/read-bills", "SKILL.md"],
        ["", "notes.md"],
        [".", "notes.md"],
      ])("are not found elsewhere: %j, %j", async (skill, path) => {
        expect(await file(skill, path)).toBeUndefined();
      });

      it("of an agent that does not exist, or cannot, are not found", async () => {
        expect([await file("skills/read-bills", "SKILL.md", "other"), await file("skills/read-bills", "SKILL.md", "..")]).toEqual(
          [undefined, undefined],
        );
      });

      it("are in folders that are listed, whether the agent names them or not", async (test) => {
        if (!agents.skillPaths) return test.skip();
        await made.writeFile!("clerk", "SKILL.md", "Not a folder of its own.");
        await soon(async () => expect(await agents.skillPaths!("clerk")).toEqual(["skills/other", "skills/read-bills"]));
        expect([await agents.skillPaths("nobody"), await agents.skillPaths("..")]).toEqual([[], []]);
      });

      it("of up to 1 MiB are read whole; larger ones throw AgentsUnavailable", async () => {
        const text = "x".repeat(ports.SKILL_FILE_BYTES);
        await made.writeFile!("clerk", "skills/read-bills/large.md", text);
        await made.writeFile!("clerk", "skills/read-bills/larger.md", `${text}x`);
        expect((await file("skills/read-bills", "large.md"))?.length).toBe(text.length);
        await expect(file("skills/read-bills", "larger.md")).rejects.toMatchObject({ name: "AgentsUnavailable" });
      });
    });

    describe("texts", () => {
      const full = `{ "name": "Full" }`;

      it("are read as they are written, created, replaced and removed, and the agents change with them", async (test) => {
        const { texts } = agents;
        if (!texts) return test.skip();
        expect(await texts.read("full")).toBeUndefined();
        const first = await texts.write("full", full, "absent");
        expect(await texts.read("full")).toEqual(first);
        expect((await agents.find("full"))?.definition.name).toBe("Full");
        const changed = await texts.write("full", `${full}\n`, first.version);
        await expect(texts.write("full", full, first.version)).rejects.toMatchObject({ name: "DocumentConflict" });
        await expect(texts.write("full", full, "absent")).rejects.toMatchObject({ name: "DocumentConflict" });
        await expect(texts.remove("full", first.version)).rejects.toMatchObject({ name: "DocumentConflict" });
        expect((await texts.read("full"))?.text).toBe(`${full}\n`);
        expect(await texts.remove("full", changed.version)).toBe(true);
        expect(await texts.read("full")).toBeUndefined();
        expect(await agents.find("full")).toBeUndefined();
        for (const call of [
          () => texts.read("../full"),
          () => texts.write("a/b", full, "absent"),
          () => texts.remove("", "absent"),
        ])
          await expect(call()).rejects.toThrow(TypeError);
      });

      it("are checked by the rules with which agents are read", async (test) => {
        const { texts } = agents;
        if (!texts) return test.skip();
        for (const text of [full, "{}", "[]", "", `{ "name": "x", "stop": [1] }`, `{ "name": "x", "context": { "y": 1 } }`]) {
          await made.edit("checked", text);
          const isFine = !texts.check(text).some(({ severity }) => severity === "error");
          await soon(async () =>
            expect([text, (await agents.find("checked"))?.metadataError === undefined]).toEqual([text, isFine]),
          );
        }
        expect(texts.check(`{ "name": "x", "nam": 1 }`)).toMatchObject([{ severity: "warning", path: ["nam"] }]);
        expect(JSON.stringify(texts.check(`{ "name": 4711 }`))).not.toContain("4711");
        expect(texts.schema()).toMatchObject({ properties: { name: { type: "string" } } });
      });
    });

    it("has many agents", async () => {
      for (let at = 0; at < 300; at++) await write(`agent-${at}`, { name: `Agent ${at}` });
      await soon(async () => expect((await agents.list()).length).toBe(300));
    });

    it("reports a binary file as unreadable", async (test) => {
      if (!made.spoil) return test.skip();
      await made.spoil("spoiled");
      await write("whole", { name: "Whole" });
      const [first] = await agents.list();
      expect(first).toMatchObject({ id: "spoiled", metadataError: "unreadable", definition: { name: "spoiled" } });
    });
  });
}
