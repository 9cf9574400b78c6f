import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

const write = (name: string, content: string) => writeFileSync(join(folder.path, name), content, { mode: 0o600 });

interface ListedSetting {
  readonly key: string;
  readonly value: unknown;
  readonly source: string;
  readonly env: string | null;
}

async function settings(
  args: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<ReadonlyMap<string, ListedSetting>> {
  const result = await runCommand(["config", "--json", ...args], { cwd: folder.path, env });
  if (result.code !== 0) throw new Error(result.stderr);
  return new Map((JSON.parse(result.stdout) as ListedSetting[]).map((setting) => [setting.key, setting]));
}

describe("settings (open points 1)", () => {
  it("a flag overrides the environment, the environment a file, and a file the preset's default; portico config shows the source", async () => {
    write(
      "portico.config.json",
      JSON.stringify({ dataDir: "of-file", proxy: { listen: { port: 1001 } }, agent: { listen: { port: 1002 } } }),
    );

    const found = await settings(["--data-dir", "of-flag"], { PORTICO_DATA_DIR: "of-env", PORTICO_PROXY_PORT: "2001" });

    const file = `file ${join(folder.path, "portico.config.json")}`;
    expect(found.get("dataDir")).toMatchObject({
      value: join(folder.path, "of-flag"),
      source: "flag --data-dir",
      env: "PORTICO_DATA_DIR",
    });
    expect(found.get("proxy.listen.port")).toMatchObject({ value: 2001, source: "environment PORTICO_PROXY_PORT" });
    expect(found.get("agent.listen.port")).toMatchObject({ value: 1002, source: file, env: "PORTICO_AGENT_PORT" });
    expect(found.get("workflow.listen.host")).toMatchObject({
      value: "127.0.0.1",
      source: "default",
      env: "PORTICO_WORKFLOW_HOST",
    });
  });

  it.each([
    ["portico.config.ts", "const port: number = 1001;\nexport default { proxy: { listen: { port } } };"],
    ["portico.config.mjs", "export default { proxy: { listen: { port: 1001 } } };"],
    ["portico.config.yaml", "proxy:\n  listen:\n    port: 1001\n"],
  ])("%s in the working directory is read", async (name, content) => {
    write(name, content);

    expect((await settings()).get("proxy.listen.port")).toMatchObject({ value: 1001, source: `file ${join(folder.path, name)}` });
  });

  it("--config names another file; its relative paths start from its own folder, those of flags from the working directory", async () => {
    mkdirSync(join(folder.path, "etc"));
    write("portico.config.json", JSON.stringify({ dataDir: "not-this" }));
    write("etc/mine.json", JSON.stringify({ agent: { agentsDir: "agents" } }));

    const found = await settings(["--config", "etc/mine.json", "--data-dir", "data"]);

    expect(found.get("agent.agentsDir")).toMatchObject({ value: join(folder.path, "etc/agents") });
    expect(found.get("dataDir")).toMatchObject({ value: join(folder.path, "data") });
  });

  it("unknown keys and wrong types stop the start with exit code 78 and one line per problem; no stack trace, no secret", async () => {
    write(
      "portico.config.json",
      JSON.stringify({
        proxi: { key: "sk-unknown" },
        proxy: { listen: { port: "many" } },
        providers: [{ id: "main", protocol: "mesages", baseUrl: "https://api.example/v1", credential: { value: "sk-wrong" } }],
        agent: { tokens: [{ token: { env: "NOT_SET" }, role: "service" }] },
      }),
    );

    const { code, stdout, stderr } = await runCommand(["start", "--json"], {
      cwd: folder.path,
      env: { PORTICO_SHUTDOWN_GRACE_MS: "soon" },
    });

    const file = `(file ${join(folder.path, "portico.config.json")})`;
    expect([code, stdout]).toEqual([78, ""]);
    expect(stderr.trimEnd().split("\n").sort()).toEqual([
      `agent.tokens.0.token: expected environment variable NOT_SET to be set, found nothing ${file}`,
      `providers.0.credential: expected a string, {"env": "NAME"} or {"file": "PATH"} or an object, found an object ${file}`,
      `providers.0.protocol: expected "messages" or "chat-completions" or "responses" or "bedrock" or "vertex" or "azure" or "ai-sdk", found "mesages" ${file}`,
      `proxi: expected no such key, found an object ${file}; did you mean "proxy"?`,
      `proxy.listen.port: expected a whole number from 0 to 65535, found "many" ${file}`,
      `shutdownGraceMs: expected a whole number from 0 to 2147483647, found "soon" (environment PORTICO_SHUTDOWN_GRACE_MS)`,
    ]);
  });

  it("a dialect is for the protocol of its provider, and knows its words alone (open points 12)", async () => {
    const provider = { baseUrl: "https://api.example/v1" };
    const problemsOf = async (providers: readonly object[]) => {
      write("portico.config.json", JSON.stringify({ providers }));
      const { code, stderr } = await runCommand(["start", "proxy", "--json"], { cwd: folder.path });
      return {
        code,
        problems: stderr
          .replaceAll(/ \(file .*\)/g, "")
          .trimEnd()
          .split("\n"),
      };
    };
    expect(
      await problemsOf([
        { ...provider, id: "chat", protocol: "chat-completions", dialect: { maxTokens: "limit", reasoning: true, tools: false } },
      ]),
    ).toEqual({
      code: 78,
      problems: [
        "providers.0.dialect.tools: expected no such key, found a boolean; known keys: maxTokens, reasoning, effortWithTools, cacheMarks, streamOptions, reasoningContent, reasoningOfCalls, turns, contentOfCalls, userAfterTool, toolIds, thoughtSignatures, user, stop, toolChoice, toolSchemas, answerSchema, thinkingSwitch, thinking, prefill, sampling",
        'providers.0.dialect.maxTokens: expected "max_completion_tokens" or "max_tokens" or a whole number of at least 1, found "limit"',
        'providers.0.dialect.reasoning: expected "effort" or "none", found true',
      ],
    });
    expect(await problemsOf([{ ...provider, id: "messages", protocol: "messages", dialect: { streamOptions: false } }])).toEqual({
      code: 78,
      problems: [
        'providers.0.dialect: expected no dialect with this "streamOptions": the protocol "messages" has none, found an object',
      ],
    });
  });

  it("a provider has one credential or several keys, and neither a key nor an argument of a command is shown", async () => {
    const provider = { id: "main", protocol: "messages", baseUrl: "http://127.0.0.1:9/v1" };
    const shown = async (fields: object) => {
      write("portico.config.json", JSON.stringify({ providers: [{ ...provider, ...fields }] }));
      const { code, stdout, stderr } = await runCommand(["config", "--json"], { cwd: folder.path });
      expect(stdout + stderr).not.toContain("sk-");
      return [code, ...stderr.trim().split("\n")].join("|");
    };
    expect(await shown({ keys: ["sk-one", { env: "HOME" }], retry: {}, concurrency: { limit: 2 } })).toBe("0|");
    expect(await shown({ credential: { command: ["print-token", "sk-argument"] } })).toBe("0|");
    expect(await shown({ credential: "sk-one", keys: ["sk-two"] })).toContain(
      "providers.0.credential: expected nothing: the provider has `keys`, found a string",
    );
    expect(await shown({ keys: [] })).toMatch(/^78\|providers\.0\.keys: /);
    expect(await shown({ credential: { command: [] } })).toMatch(/^78\|providers\.0\.credential/);
    expect(await shown({ concurrency: {} })).toContain("providers.0.concurrency.limit: expected a whole number");
  });

  it.each([
    ["portico.config.json", '{\n  "agent": { "tokens": [ "sk-secret", ] } }', "portico.config.json:2:39 is not valid JSON"],
    ["portico.config.yaml", "proxy: [1\nkey: sk-secret", "portico.config.yaml:2:1 is not valid YAML: bad indent"],
    [
      "portico.config.ts",
      "export default {\n  proxy: 1\n  agent: 2\n}",
      "portico.config.ts:3 cannot be loaded: SyntaxError: Expected ',', got 'ident'",
    ],
    ["portico.config.mjs", "\nthrow new Error('not today')", "portico.config.mjs:2:7 cannot be loaded: Error: not today"],
  ])("a broken %s is one line with its place and exit code 78", async (name, content, line) => {
    write(name, content);

    expect(await runCommand(["start"], { cwd: folder.path })).toEqual({
      code: 78,
      stdout: "",
      stderr: `${join(folder.path, line)}\n`,
    });
  });

  it("a file that --config names and that is not there, or two files to choose from, are refused with 78", async () => {
    expect(await runCommand(["config", "--config", "nope.json"], { cwd: folder.path })).toMatchObject({
      code: 78,
      stderr: `The configuration file ${join(folder.path, "nope.json")} does not exist\n`,
    });

    write("portico.config.json", "{}");
    write("portico.config.yaml", "{}");
    expect(await runCommand(["config"], { cwd: folder.path })).toMatchObject({
      code: 78,
      stderr: "Several configuration files: portico.config.json, portico.config.yaml. Keep one, or name one with --config\n",
    });
  });

  it("a secret is a string, an environment variable's or a file's; it reaches the upstream and is masked everywhere else", async () => {
    const seen: string[] = [];
    const upstream = createServer((request, response) => {
      request.resume();
      seen.push(String(request.headers.authorization));
      response.setHeader("content-type", "application/json").end("{}");
    });
    await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
    const baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
    const provider = { protocol: "chat-completions", baseUrl, models: ["m"] };
    write("key.txt", "sk-of-file\n");
    const config = {
      providers: [
        { ...provider, id: "string", credential: "sk-of-string" },
        { ...provider, id: "env", credential: { env: "UPSTREAM_KEY" } },
        { ...provider, id: "file", credential: { file: "key.txt" } },
      ],
    };
    const owner = { token: { env: "AGENT_SERVICE_TOKEN" }, userId: "owner", role: "owner" };
    const env = { UPSTREAM_KEY: "sk-of-env", AGENT_SERVICE_TOKEN: "sk-of-owner" };
    await using service = await startPortico({
      cwd: folder.path,
      hasOwnProcess: true,
      config: { ...config, agent: { tokens: [owner] } },
      env,
    });
    try {
      for (const { id } of config.providers) {
        await fetch(`${service.url("proxy")}/chat/completions`, {
          method: "POST",
          headers: { "x-api-key": await service.token(id), "content-type": "application/json" },
          body: JSON.stringify({ model: "m", messages: [] }),
        });
      }
      const managed = await fetch(`${service.url("agent")}/api/safe-tokens`, {
        headers: { "x-agent-service-token": "sk-of-owner" },
      });
      const shown = await service.run("config");

      expect(managed.status).toBe(200);
      expect(service.read("credentials.json"), "no token has to be made").not.toContain("agentServiceToken");
      expect(seen).toEqual(["Bearer sk-of-string", "Bearer sk-of-env", "Bearer sk-of-file"]);
      expect(shown.stdout).toMatch(/providers\.0\.credential +\*\*\* +file/);
      expect(shown.stdout).toMatch(/providers\.1\.credential +\*\*\* from environment UPSTREAM_KEY/);
      expect(shown.stdout).toMatch(/providers\.2\.credential +\*\*\* from file/);
      expect(shown.stdout + shown.stderr + service.stdout() + service.stderr()).not.toContain("sk-of-");
    } finally {
      upstream.closeAllConnections();
      upstream.close();
    }
  });
});
