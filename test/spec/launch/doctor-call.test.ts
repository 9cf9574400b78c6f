import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand, temporaryFolder } from "../../harness/portico-process.ts";

interface Finding {
  readonly about: string;
  readonly isWrong: boolean;
  readonly message: string;
  readonly fix?: string;
}

const KEY = "sk-key-of-the-doctor-0123456789";

const ANSWER = {
  ...{ id: "c", object: "chat.completion", created: 1, model: "m-large" },
  choices: [{ index: 0, message: { role: "assistant", content: "ok" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
};

/** By the first part of the path: what a vendor answers, and what the doctor says of it. */
const VENDORS: Readonly<
  Record<string, { readonly status: number; readonly body: unknown; readonly says: string; readonly fix?: string }>
> = {
  good: { status: 200, body: ANSWER, says: "m-large answers" },
  // platform.openai.com, error codes.
  wrongkey: {
    status: 401,
    body: { error: { message: `Incorrect API key provided: ${KEY}.`, type: "invalid_request_error", code: "invalid_api_key" } },
    says: "m-large: it refuses the key (status 401: Incorrect API key provided: ***.)",
    fix: "correct the key in its `credential` or `keys`",
  },
  spent: {
    status: 429,
    body: {
      error: {
        message: "You exceeded your current quota, please check your plan and billing details.",
        code: "insufficient_quota",
      },
    },
    says: "m-large: the key is valid, but its account has no money or quota left",
    fix: "add credit",
  },
  limited: {
    status: 429,
    body: { error: { message: "Rate limit reached for requests", code: "rate_limit_exceeded" } },
    says: "m-large: the key is valid, but limited at the moment",
    fix: "try again in a minute",
  },
  nomodel: {
    status: 404,
    body: { error: { message: "The model `m-large` does not exist or you do not have access to it.", code: "model_not_found" } },
    says: "m-large: it does not know the model, or the key may not use it",
    fix: "correct the name in `models`",
  },
  region: {
    status: 403,
    body: { error: { message: "Country, region, or territory not supported", code: "unsupported_country_region_territory" } },
    says: "m-large: the vendor does not serve the region of this machine",
    fix: "use a base URL of a region",
  },
  // ai.google.dev, troubleshooting: an invalid key is status 400.
  google: {
    status: 400,
    body: { error: { code: 400, message: "API key not valid. Please pass a valid API key.", status: "INVALID_ARGUMENT" } },
    says: "m-large: it refuses the key (status 400",
    fix: "correct the key",
  },
  // docs.claude.com, errors: an account without money is status 400.
  anthropic: {
    status: 400,
    body: { error: { type: "invalid_request_error", message: "Your credit balance is too low to access the Anthropic API." } },
    says: "m-large: the key is valid, but its account has no money or quota left",
    fix: "add credit",
  },
  fault: {
    status: 503,
    body: { error: { message: "overloaded" } },
    says: "m-large: the vendor has a fault or is overloaded",
    fix: "try again later",
  },
  nopath: {
    status: 404,
    body: "<html>Not Found</html>",
    says: "m-large: the address is wrong: there is no such path",
    fix: "missing in `baseUrl`",
  },
  page: {
    status: 200,
    body: "<html>Welcome</html>",
    says: 'm-large: the answer is not one of the protocol "chat-completions"',
    fix: "correct `baseUrl`",
  },
};

describe("portico doctor --call", () => {
  let upstream: Server;
  let port: number;
  const calls: string[] = [];
  let most = 0;
  let open = 0;
  beforeAll(async () => {
    upstream = createServer((request, response) => {
      const vendor = VENDORS[request.url!.split("/")[1]!];
      const isCall = request.method === "POST";
      if (isCall) most = Math.max(most, (open += 1));
      response.on("close", () => void (isCall && (open -= 1)));
      let text = "";
      request.on("data", (chunk: Buffer) => void (text += chunk.toString()));
      request.on("end", () => {
        if (isCall) calls.push(text);
        const { status, body } =
          isCall && vendor
            ? vendor
            : { status: 200, body: { object: "list", data: [{ id: "text-embed-1" }, { id: "m-large" }] } };
        response.writeHead(status, { "content-type": typeof body === "string" ? "text/html" : "application/json" });
        setImmediate(() => response.end(typeof body === "string" ? body : JSON.stringify(body)));
      });
    });
    await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
    ({ port } = upstream.address() as AddressInfo);
  });
  afterAll(() => {
    upstream.closeAllConnections();
    upstream.close();
  });

  it("sends one small call to each provider, says what each refusal means, and shows no secret", async () => {
    const folder = temporaryFolder();
    try {
      const protocol = "chat-completions";
      const providers = [
        ...Object.keys(VENDORS).map((id) => ({
          ...{ id, protocol, credential: KEY, models: id === "good" ? "discover" : ["m-large"] },
          baseUrl: `http://127.0.0.1:${port}/${id}${id === "nopath" ? "" : "/v1"}`,
          retry: { attempts: 5 },
        })),
        { id: "closed", protocol, baseUrl: "http://127.0.0.1:9/v1", models: ["m"] },
        { id: "plain", protocol, baseUrl: `https://127.0.0.1:${port}/v1`, models: ["m"] },
        { id: "nameless", protocol, baseUrl: "http://no-such-host.invalid/v1", models: ["m"] },
        {
          ...{ id: "command", protocol, baseUrl: `http://127.0.0.1:${port}/good/v1`, models: ["m"] },
          credential: { command: [process.execPath, "-e", `process.exit(7) // ${KEY}`] },
        },
      ];
      writeFileSync(join(folder.path, "portico.config.json"), JSON.stringify({ providers }), { mode: 0o600 });
      const quiet = await runCommand(["doctor", "--json"], { cwd: folder.path });
      expect(calls, "without --call, nothing is sent to a model").toEqual([]);
      expect(quiet.stdout).not.toContain("call of provider");

      const { code, stdout, stderr } = await runCommand(["doctor", "--call", "--json"], {
        cwd: folder.path,
        env: { HTTPS_PROXY: "http://proxy.invalid:3128" },
      });
      const found = new Map((JSON.parse(stdout) as Finding[]).map((finding) => [finding.about, finding]));
      expect([code, stderr]).toEqual([1, ""]);
      for (const [id, { says, fix }] of Object.entries(VENDORS)) {
        const finding = found.get(`call of provider ${id}`)!;
        expect(finding.message, id).toContain(says);
        expect(finding.isWrong, id).toBe(fix !== undefined);
        if (fix) expect(finding.fix, id).toContain(fix);
      }
      expect(found.get("call of provider closed")).toMatchObject({
        message: "nothing listens at its address (ECONNREFUSED)",
        fix: "correct `baseUrl`, or start the model server. HTTPS_PROXY is set, but calls use only the proxy of `outbound.proxy`",
      });
      expect(found.get("call of provider plain")!.message).toMatch(/^TLS failed: the port may speak plain HTTP \(/);
      expect(found.get("call of provider nameless")!.message).toMatch(/^the name in its address is unknown to DNS \(/);
      expect(found.get("call of provider command")!.message).toContain(
        "got no credential from its command: it ended with exit code 7",
      );
      expect(stdout).not.toContain("sk-key");
      expect(calls).toHaveLength(Object.keys(VENDORS).length);
      expect(most).toBeLessThanOrEqual(4);
      for (const call of calls) expect(JSON.parse(call)).toMatchObject({ model: "m-large", max_completion_tokens: 16 });
    } finally {
      folder.remove();
    }
  });
});
