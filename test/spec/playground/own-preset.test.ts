import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { createApp } from "@portico/core";
import OpenAI from "openai";
import { readPlatformOptions } from "@portico/presets/proxy";
import { describe, expect, it } from "vitest";
import { team, teamSchema } from "../../../playground/own-preset.ts";
import { runPortico, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { root } from "../../rooms/repository.ts";

const program = resolve(root, "playground/own-preset.ts");
const env = { NOTEBOOK_TOKEN: "the-token" };

describe("a preset of one's own, started by itself", () => {
  it("listens once per surface, and serves what it extends beside what it adds", async () => {
    await using service = await startPortico({ program, env });
    expect(Object.keys(service.ready.listeners)).toEqual(["proxy", "notebook"]);
    const client = new OpenAI({ baseURL: service.url("proxy"), apiKey: await service.token("demo") });
    const answer = await client.chat.completions.create({ model: "demo", messages: [{ role: "user", content: "Hello" }] });
    expect(answer.choices[0]?.message.content).toContain("You said: Hello");
    const notes = await fetch(`${service.url("notebook")}/notes`, { headers: { authorization: "Bearer the-token" } });
    expect(await notes.json()).toEqual({ notes: [] });
    expect(await (await fetch(`${service.url("notebook")}/readyz`)).json()).toEqual({ status: "ready" });
  });

  it("says where it runs as any service does, keeps others out of its data directory, and stops in order", async () => {
    await using service = await startPortico({ program, env });
    expect(JSON.parse(service.read("endpoints.json"))).toEqual({ pid: service.pid, listeners: service.ready.listeners });
    const second = await runPortico([], { program, env, cwd: service.cwd });
    expect([second.code, second.stdout]).toEqual([75, ""]);
    expect(await service.stop()).toBe(0);
    expect(existsSync(join(service.dataDir, "endpoints.json"))).toBe(false);
  });

  it("listens where its own settings say, from the file as from the environment", async () => {
    const folder = temporaryFolder();
    const config = { notebook: { token: { env: "THE_TOKEN" }, listen: { host: "127.0.0.2" } } };
    await using service = await startPortico({ program, cwd: folder.path, config, env: { THE_TOKEN: "t" } });
    expect(new URL(service.url("notebook")).hostname).toBe("127.0.0.2");
    await service.stop();
    folder.remove();
  });

  it("is told what is wrong with the platform's keys and its own in one report, with exit code 78", async () => {
    const { code, stderr } = await runPortico([], { program, env: { PORTICO_PROXY_PORT: "x", NOTEBOOK_PAGE_SIZE: "2" } });
    expect(code).toBe(78);
    expect(stderr.split("\n").toSorted()).toEqual([
      "",
      'notebook.token: expected a string, {"env": "NAME"} or {"file": "PATH"}, found nothing; NOTEBOOK_TOKEN sets it',
      'proxy.listen.port: expected a whole number from 0 to 65535, found "x" (environment PORTICO_PROXY_PORT)',
    ]);
  });

  it.each([
    [["--jsn"], 64, "Unknown option --jsn; did you mean --json? (see team start --help)\n"],
    [["more"], 64, 'Unknown command "more" (see team --help)\n'],
  ])("is called %j: that is refused with one line", async (args, code, stderr) => {
    expect(await runPortico(args, { program })).toEqual({ code, stdout: "", stderr });
  });

  it("explains itself under its own name", async () => {
    const { code, stdout } = await runPortico(["--help"], { program });
    expect(code).toBe(0);
    expect(stdout).toContain("A model proxy for a team, and its notebook");
    expect(stdout).toContain("USAGE team");
  });
});

describe("a preset of one's own, embedded", () => {
  it("is built from options in code; the environment overrides them", async () => {
    const folder = temporaryFolder();
    const env = { NOTEBOOK_PAGE_SIZE: "2", PORTICO_AUTO_PROVIDERS: "false", PORTICO_LOG_LEVEL: "silent" };
    const config = { dataDir: join(folder.path, "data"), notebook: { token: "mine", pageSize: 1 } };
    await using app = await createApp(team(await readPlatformOptions(config, { schema: teamSchema, env })));
    const call = (path: string, init?: RequestInit) =>
      app.surface("notebook").fetch(
        new Request(`http://desk.local${path}`, {
          ...init,
          headers: { authorization: "Bearer mine", "content-type": "application/json" },
        }),
      );
    for (const title of ["a", "b", "c"]) await call("/notes", { method: "POST", body: JSON.stringify({ title, text: "" }) });
    const { notes } = (await (await call("/notes")).json()) as { notes: { title: string }[] };
    expect(notes.map(({ title }) => title)).toEqual(["a", "b"]);
    await app.close();
    folder.remove();
  });

  it("refuses keys that it does not have, in a line for each", async () => {
    await expect(readPlatformOptions({ dataDri: "x" } as object, { env: {} })).rejects.toThrow(
      'dataDri: expected no such key, found a string (options); did you mean "dataDir"?',
    );
  });
});
