import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { freePort } from "../../harness/ports.ts";

interface Finding {
  readonly about: string;
  readonly isWrong: boolean;
  readonly message: string;
  readonly fix?: string;
}

describe("portico doctor", () => {
  const models = { object: "list", data: [{ id: "m-large", object: "model" }] };
  let upstream: Server;
  let port: number;
  beforeAll(async () => {
    upstream = createServer((request, response) => {
      response.statusCode = request.headers.authorization === "Bearer sk-right" ? 200 : 401;
      response.setHeader("content-type", "application/json").end(JSON.stringify(models));
    });
    await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
    ({ port } = upstream.address() as AddressInfo);
  });
  afterAll(() => {
    upstream.closeAllConnections();
    upstream.close();
  });

  it("finds what is wrong with files, environment, providers and ports, each with its fix, and exits 1; no secret is shown", async () => {
    const folder = temporaryFolder();
    try {
      const provider = { protocol: "chat-completions", baseUrl: `http://127.0.0.1:${port}/v1`, models: ["m-large", "m-small"] };
      const config = {
        providers: [
          { ...provider, id: "refused", credential: "sk-wrong" },
          { ...provider, id: "half", credential: "sk-right" },
          { ...provider, id: "away", baseUrl: "http://127.0.0.1:9/v1" },
        ],
        proxy: { listen: { port } },
      };
      writeFileSync(join(folder.path, "portico.config.json"), JSON.stringify(config));
      chmodSync(join(folder.path, "portico.config.json"), 0o644);
      mkdirSync(join(folder.path, ".portico"));
      chmodSync(join(folder.path, ".portico"), 0o755);

      const { code, stdout, stderr } = await runCommand(["doctor", "--json"], {
        cwd: folder.path,
        // The variable of a list with entries is one of a setting, too.
        env: {
          PORTICO_PROXY_PROT: "1",
          PORTICO_TOKEN: "x",
          PORTICO_AGENT_TOKENS: '[{"token":"owner-token-0123456789","userId":"o","role":"owner"}]',
        },
      });

      const findings = JSON.parse(stdout) as Finding[];
      const of = (about: string) => findings.filter((finding) => finding.about === about && finding.isWrong);
      expect([code, stderr]).toEqual([1, ""]);
      expect(findings.filter(({ isWrong, fix }) => isWrong && !fix)).toEqual([]);
      expect(of("configuration")[0]?.message).toContain(
        "contains secrets (providers.0.credential, providers.1.credential) and other users can read it",
      );
      expect(of("environment").map(({ message, fix }) => [message.split(" ")[0], fix])).toEqual([
        ["PORTICO_PROXY_PROT", "rename it to PORTICO_PROXY_PORT"],
        // Every variable of ours has the first word; that makes none near.
        ["PORTICO_TOKEN", "remove it"],
      ]);
      expect(of("data directory")[0]?.fix).toBe(`chmod 700 ${join(folder.path, ".portico")}`);
      expect(of("provider refused")[0]).toMatchObject({
        message: expect.stringContaining("401"),
        fix: "correct the key in its `credential`",
      });
      expect(of("provider half")[0]?.message).toBe("answers, but its list of models does not contain m-small");
      expect(of("provider away")[0]?.fix).toContain("baseUrl");
      expect(of("port of proxy")[0]?.message).toBe(`${port} on 127.0.0.1 is already in use`);
      expect(stdout).not.toContain("sk-");
    } finally {
      folder.remove();
    }
  });

  it("a configuration that cannot be read is a finding for each of its problems", async () => {
    const { code, stdout } = await runCommand(["doctor"], { env: { PORTICO_PROXY_PORT: "many", PORTICO_AGENT_PORT: "few" } });

    expect(code).toBe(1);
    expect(stdout).toContain("WRONG  configuration: proxy.listen.port: expected a whole number");
    expect(stdout).toContain("WRONG  configuration: agent.listen.port: expected a whole number");
    expect(stdout).toContain("2 of 2 checks found a problem.");
  });

  it("beside a running service with a fixed port nothing is wrong, and it exits 0", async () => {
    const free = await freePort();
    await using service = await startPortico({ env: { PORTICO_PROXY_PORT: String(free) } });

    const { code, stdout } = await service.run("doctor");

    expect(stdout).toContain(`ok     port of proxy: ${free} is in use by this instance's own service`);
    expect(stdout).toContain("ok     service: running on this data directory");
    expect(stdout).toContain("No problems found.");
    expect(code).toBe(0);
  });
});
