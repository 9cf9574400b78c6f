import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileSecrets } from "@portico/adapters/secrets/files";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { findStoreTooNew, ports, Secret } from "@portico/core";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { openAdapter } from "./open-adapter.ts";
import { secretsConformance } from "./secrets.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-secrets-"));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
const newPath = (): string => join(folder, `data-${++files}`, "credentials.json");

secretsConformance("memory", () => memorySecrets());
secretsConformance("files", () => fileSecrets({ path: newPath() }), { shared: true });

describe("secrets/files", () => {
  let path: string;
  let secrets: ports.Secrets;
  beforeEach(async () => {
    path = newPath();
    ({ port: secrets } = await openAdapter(fileSecrets({ path })));
  });

  const write = (text: string, mode = 0o600): void => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text, { mode });
    chmodSync(path, mode);
  };
  const modeOf = (file: string): number => statSync(file).mode & 0o777;

  it("keeps one JSON object of names and values that only its owner can read (open points 1)", async () => {
    const { value } = await secrets.keep("agent", () => secrets.create("agent_"));
    await secrets.replace("workflow", new Secret("w"));
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ $format: "1", agent: value.reveal(), workflow: "w" });
    for (const file of readdirSync(dirname(path))) expect([file, modeOf(join(dirname(path), file))]).toEqual([file, 0o600]);
    expect(modeOf(dirname(path))).toBe(0o700);
  });

  it("makes nothing before there is something to keep", () => {
    expect(existsSync(dirname(path))).toBe(false);
  });

  it("sets a mode right that lets others read", async () => {
    write('{"agent":"kept"}', 0o644);
    expect((await secrets.keep("agent", () => secrets.create(""))).value.reveal()).toBe("kept");
    expect(modeOf(path)).toBe(0o600);
  });

  it("reads a kept secret without writing anything", async () => {
    write('{"agent":"kept"}', 0o400);
    chmodSync(dirname(path), 0o500);
    expect((await secrets.keep("agent", () => secrets.create(""))).value.reveal()).toBe("kept");
    chmodSync(dirname(path), 0o700);
    expect(readdirSync(dirname(path))).toEqual(["credentials.json"]);
  });

  it.each([
    "",
    "{",
    '{"agent":"hidden-value"',
    '["hidden-value"]',
    '"hidden-value"',
    "null",
    '{"agent":1}',
    '{"agent":""}',
    '{"a":{"b":"hidden-value"}}',
  ])("refuses %j, leaves it as it is, and repeats none of it", async (text) => {
    write(text);
    for (const call of [() => secrets.keep("new", () => secrets.create("")), () => secrets.replace("new", new Secret("x"))]) {
      const refused: unknown = await call().catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(ports.SecretsUnavailable);
      expect(`${refused}${String((refused as Error).cause)}`).not.toContain("hidden");
    }
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  it("says that it is unavailable when the place cannot be read or written, and keeps the cause", async () => {
    mkdirSync(path, { recursive: true });
    const unavailable = (code: string) => ({ name: "SecretsUnavailable", cause: { code } });
    await expect(secrets.keep("agent", () => secrets.create(""))).rejects.toMatchObject(unavailable("EISDIR"));
    const file = join(folder, "a-file");
    writeFileSync(file, "");
    const { port: lost } = await openAdapter(fileSecrets({ path: join(file, "below", "credentials.json") }));
    await expect(lost.replace("agent", new Secret("x"))).rejects.toMatchObject(unavailable("ENOTDIR"));
  });

  it("writes over what a killed process left of its writing", async () => {
    await secrets.keep("agent", () => new Secret("kept"));
    writeFileSync(`${path}.new`, '{"agent":"half of a much longer file that was never finished');
    await secrets.keep("other", () => new Secret("o"));
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ $format: "1", agent: "kept", other: "o" });
    expect(existsSync(`${path}.new`)).toBe(false);
  });

  it.each(["2", "17", 2])("refuses a file of the newer format %j, and leaves it alone", async (format) => {
    const text = JSON.stringify({ $format: format, agent: "kept" });
    write(text);
    const error: unknown = await secrets.keep("agent", () => new Secret("other")).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ports.SecretsUnavailable);
    expect(findStoreTooNew(error)?.message).toContain("newer version");
    await expect(secrets.replace("agent", new Secret("other"))).rejects.toThrow("newer version");
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  it("is not held up by a process that was killed while it held the lock", async () => {
    await secrets.keep("agent", () => new Secret("kept"));
    const hold = `const lock = new (require("node:sqlite").DatabaseSync)(process.argv[1]);
      lock.exec("BEGIN EXCLUSIVE"); process.send("held"); setInterval(() => lock, 1000);`;
    const holder = spawn(process.execPath, ["-e", hold, `${path}.lock`], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    await once(holder, "message");
    expect(() => new DatabaseSync(`${path}.lock`, { timeout: 0 }).exec("BEGIN EXCLUSIVE")).toThrow("locked");
    holder.kill("SIGKILL");
    await once(holder, "exit");
    expect((await secrets.keep("other", () => new Secret("o"))).created).toBe(true);
  });

  it("agrees with other processes that start at the same time, and loses no secret", async () => {
    const names = ["one", "two", "three", "four"];
    const children = names.map((name) => fork(join(import.meta.dirname, "processes/keep-secret.ts"), [path, name]));
    await Promise.all(children.map((child) => once(child, "message")));
    const answers = await Promise.all(
      children.map(async (child) => {
        const answered = once(child, "message");
        child.send("go");
        const [[answer]] = await Promise.all([answered, once(child, "exit")]);
        return answer as { common: string; created: boolean; mine: string };
      }),
    );
    expect(new Set(answers.map((answer) => answer.common)).size).toBe(1);
    expect(answers.filter((answer) => answer.created)).toHaveLength(1);
    const own = Object.fromEntries(names.map((name, at) => [name, answers[at]?.mine]));
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ $format: "1", common: answers[0]?.common, ...own });
  });
});
