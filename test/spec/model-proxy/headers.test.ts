import { CREDENTIAL_PREFIXES } from "@portico/core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS, COMBINATIONS, SAME } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { PROVIDER_KEY, type ProxyApp, startProxy } from "../../harness/proxy-app.ts";
import { afterInterim, events, json, redirect, whole } from "../../harness/upstream-answers.ts";

const AGENT_TOKEN = "agent_0123456789abcdefghijklmnopqrstuvwxyz";
/** As short as a setting allows. */
const WORKFLOW_TOKEN = "hunter2";
/** Of this instance or another: what they look like is enough. */
const CREDENTIALS = [
  ...["service_abc", "whs_abcdefghij", "grant_eyJpIjoiMSJ9.c2ln", AGENT_TOKEN, WORKFLOW_TOKEN],
  ...Object.values(CREDENTIAL_PREFIXES).map((prefix) => prefix + "Aa0-_".repeat(9)),
];

/** What a fetch host's Request may not carry is tested on the node host only. */
describe.each(["node", "fetch"] as const)("headers and credentials (4.1, 5; open points 2) on a %s host", (host) => {
  describe.each(COMBINATIONS)("$caller caller, $upstream upstream", ({ caller, upstream: protocol }) => {
    const { path, request } = CALLERS[caller];
    let upstream: FakeUpstream;
    let proxy: ProxyApp;
    let token: string;

    beforeAll(async () => {
      upstream = await startFakeUpstream();
      const headers = { "x-organization": "org-1", "User-Agent": "configured-agent" };
      proxy = await startProxy({
        host,
        providers: [{ protocol, upstream, headers }],
        ownTokens: [AGENT_TOKEN, WORKFLOW_TOKEN],
      });
      token = await proxy.token();
    });
    beforeEach(() => upstream.reset());
    afterAll(async () => {
      await proxy.close();
      await upstream.close();
    });

    const post = (headers: Readonly<Record<string, string>> = {}, query = "") =>
      proxy.call({
        path: path + query,
        headers: { "content-type": "application/json", "x-api-key": token, ...headers },
        body: JSON.stringify(request()),
      });

    it("the provider's own credential goes upstream, in its protocol's header and no other", async () => {
      expect((await post()).status).toBe(200);
      const { headers } = await upstream.request();
      if (protocol === "messages") expect([headers["x-api-key"], headers.authorization]).toEqual([PROVIDER_KEY, undefined]);
      else expect([headers.authorization, headers["x-api-key"]]).toEqual([`Bearer ${PROVIDER_KEY}`, undefined]);
    });

    it("a caller's own anthropic-version counts; without one a Messages upstream gets a default", async () => {
      await post();
      await post({ "anthropic-version": "2024-02-02" });
      const [first, second] = upstream.requests;
      if (protocol === "messages") expect(first?.headers["anthropic-version"]).toMatch(/^\d{4}-\d\d-\d\d$/);
      if (caller === protocol) expect(second?.headers["anthropic-version"]).toBe("2024-02-02");
    });

    it("the provider's configured headers are added, stronger than the caller's", async () => {
      await post({ "x-organization": "org-of-the-caller", "user-agent": "agent-of-the-caller" });
      const { headers } = await upstream.request();
      expect([headers["x-organization"], headers["user-agent"]]).toEqual(["org-1", "configured-agent"]);
    });

    it("the safe token never goes upstream: in no header, no query, no body", async () => {
      const carriers = {
        cookie: `t=${token}`,
        "x-other": token,
        "proxy-authorization": `Bearer ${token}`,
        "x-agent-service-token": token,
      };
      const bearer = { authorization: `Bearer ${token}` };
      const sent: Readonly<Record<string, string>>[] = [{}, bearer, { ...bearer, "x-api-key": "" }, carriers];
      for (const headers of sent) {
        expect((await post(headers, `?key=${token}&beta=true`)).status).toBe(200);
      }
      for (const arrived of upstream.requests) {
        expect(arrived.rawHeaders.join("\n")).not.toContain(token);
        expect(arrived.url).not.toContain(token);
        expect(await arrived.text()).not.toContain(token);
      }
    });

    it("Portico's other credentials are never sent upstream: in any header, plain or escaped in the query (5)", async () => {
      const named = { "x-agent-service-token": "any", "x-workflow-service-token": "any", "x-execution-grant": "any" };
      for (const credential of CREDENTIALS) {
        const headers = { ...named, "x-other": credential, "x-scheme": `Bearer ${credential}`, baggage: `a=1,key=${credential}` };
        const escaped = `%${credential.charCodeAt(0).toString(16)}${encodeURIComponent(credential.slice(1))}`;
        const query = `?a=${credential}&b=${escaped}&${escaped}&c=x%20${credential}`;
        expect((await post(headers, query)).status, credential).toBe(200);
        const arrived = upstream.requests.at(-1)!;
        for (const name of [...Object.keys(headers), credential])
          expect(arrived.rawHeaders.join("\n").toLowerCase()).not.toContain(name.toLowerCase());
        expect(arrived.url).not.toContain("?");
      }
    });

    it("cookies and hop-by-hop headers don't go upstream", async () => {
      await post({ cookie: "session=1", "proxy-authorization": "Basic eDp5", te: "trailers", "x-service-provider-id": "other" });
      const { headers } = await upstream.request();
      for (const name of ["cookie", "proxy-authorization", "te", "upgrade", "keep-alive", "trailer"])
        expect(headers[name], name).toBeUndefined();
      expect(headers.host).toBe(new URL(upstream.baseUrl).host);
    });

    it("where a caller connects from, and headers of Portico's own, don't go upstream", async () => {
      await post({ "x-forwarded-for": "10.0.0.1", "x-forwarded-proto": "https", "x-portico-anything": "1" });
      const names = Object.keys((await upstream.request()).headers);
      expect(names.filter((name) => /^x-(?:forwarded|portico)-/.test(name))).toEqual([]);
    });

    it.runIf(caller !== protocol)("a converted call has only the headers that mean the same in both protocols", async () => {
      const shared = {
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        tracestate: "a=1",
        baggage: "b=2",
      };
      const own = {
        "anthropic-beta": "context-1m-2025-08-07",
        "openai-organization": "org-2",
        "x-stainless-lang": "js",
        "x-unknown": "1",
      };
      for (const stream of [false, true]) {
        upstream.reset();
        const body = JSON.stringify(request("hello", { stream }));
        const headers = { "content-type": "application/json", "x-api-key": token, accept: "text/plain", ...shared, ...own };
        await (await proxy.call({ path, headers, body })).bytes();
        const { headers: arrived } = await upstream.request();
        expect(arrived).toMatchObject({
          ...shared,
          "content-type": "application/json",
          accept: stream ? "text/event-stream" : "application/json",
          "accept-encoding": "identity",
        });
        expect(Object.keys(own).filter((name) => name in arrived)).toEqual([]);
      }
    });

    it.runIf(caller !== protocol)(
      "a converted answer has request ids, rate limits and when to try again of the upstream's headers, and no others",
      async () => {
        const kept = {
          "request-id": "req_upstream",
          "x-request-id": "req_upstream_2",
          "anthropic-ratelimit-tokens-remaining": "99",
          "x-ratelimit-limit-requests": "60",
          "retry-after-ms": "1500",
          "x-should-retry": "true",
        };
        const lost = {
          "x-unknown": "1",
          "openai-processing-ms": "12",
          etag: '"1"',
          "content-disposition": "inline",
          "x-retry-after": "1",
        };
        upstream.answerNext(json(429, { error: { message: "slow down" } }, { ...kept, ...lost }));
        const reply = await post();
        expect(reply.status).toBe(429);
        expect(reply.headers).toMatchObject(kept);
        expect(Object.keys(lost).filter((name) => name in reply.headers)).toEqual([]);
      },
    );

    it("the provider's key, its header and the upstream's address come back in no header", async () => {
      const { host: address } = new URL(upstream.baseUrl);
      const telling = {
        "x-debug-authorization": `Bearer ${PROVIDER_KEY}`,
        "x-api-key": PROVIDER_KEY,
        authorization: `Bearer ${PROVIDER_KEY}`,
        "x-served-by": address,
        "content-location": `${upstream.baseUrl}/messages`,
        link: `<${upstream.baseUrl}/x>; rel=next`,
        "set-cookie": ["a=1", "b=2"],
        "set-cookie2": "c=1",
      };
      for (const status of [200, 429]) {
        upstream.answerNext(json(status, { error: { message: "no", type: "rate_limit_error" } }, telling));
        const reply = await post();
        const shown = JSON.stringify(reply.headers);
        expect(shown).not.toContain(PROVIDER_KEY);
        expect(shown).not.toContain(address);
        expect(shown).not.toMatch(/set-cookie/);
      }
    });

    it("orders to web servers and browsers come back in no header, whatever the status", async () => {
      const orders = {
        "x-accel-redirect": "/internal/file",
        "x-accel-buffering": "yes",
        "x-accel-expires": "3600",
        "x-sendfile": "/etc/passwd",
        "x-lighttpd-send-file": "/etc/passwd",
        "x-litespeed-location": "/internal",
        "x-reproxy-url": "http://127.0.0.1/",
        "clear-site-data": '"*"',
        refresh: "0; url=https://elsewhere.example/",
        "service-worker-allowed": "/",
        "access-control-allow-origin": "*",
        "access-control-allow-credentials": "true",
        "accept-ch": "Sec-CH-UA-Model",
        "expect-ct": "max-age=1",
        "public-key-pins": "max-age=1",
        "report-to": "{}",
        "reporting-endpoints": 'a="https://elsewhere.example/"',
        nel: "{}",
        "origin-trial": "x",
        "set-login": "logged-out",
        sourcemap: "/x.map",
        "x-sourcemap": "/x.map",
        "speculation-rules": '"/x"',
        "x-portico-trail": "elsewhere",
        "x-portico-dropped": "everything",
      };
      for (const status of [200, 429]) {
        upstream.answerNext(json(status, { error: { message: "no", type: "rate_limit_error" } }, orders));
        const { headers } = await post();
        const foreign = Object.entries(orders).filter(([name, value]) => headers[name] === value);
        expect([status, foreign]).toEqual([status, []]);
      }
    });

    it("an upstream that echoes key and address in an error is not repeated", async () => {
      const { host: address, hostname } = new URL(upstream.baseUrl);
      const message = `Bad key ${PROVIDER_KEY} (Bearer ${PROVIDER_KEY}) at ${upstream.baseUrl}/x, see http://${address}/`;
      for (const body of [
        { type: "error", error: { type: "authentication_error", message } },
        { error: { message, type: "invalid_request_error", param: null, code: "invalid_api_key" } },
        { detail: message },
        message,
      ]) {
        upstream.answerNext(typeof body === "string" ? whole(401, body, { "content-type": "text/plain" }) : json(401, body));
        const reply = await post();
        const text = await reply.text();
        expect(reply.status).toBe(401);
        for (const secret of [PROVIDER_KEY, address, hostname]) expect(text, JSON.stringify(body)).not.toContain(secret);
      }
    });

    it.skipIf(caller === protocol)(
      "an upstream that echoes its key in an error inside a stream is not repeated when converting",
      async () => {
        const error = { type: "error", error: { type: "api_error", message: `key ${PROVIDER_KEY} at ${upstream.baseUrl}` } };
        upstream.answerNext(events([`event: error\ndata: ${JSON.stringify(error)}\n\n`]));
        const reply = await proxy.post(path, request("hello", { stream: true }));
        const text = await reply.text();
        expect(text).toContain("error");
        expect(text).not.toContain(PROVIDER_KEY);
        expect(text).not.toContain(new URL(upstream.baseUrl).host);
      },
    );

    it("a redirect is not followed, and its address is not shown", async () => {
      await using elsewhere = await startFakeUpstream();
      upstream.answerAll(redirect(`${elsewhere.baseUrl}/messages`));
      const reply = await post();
      expect(reply.status).toBeGreaterThanOrEqual(300);
      expect(JSON.stringify(reply.headers) + (await reply.text())).not.toContain(new URL(elsewhere.baseUrl).host);
      expect(elsewhere.requests).toHaveLength(0);
    });

    it("interim answers (1xx) are ignored", async () => {
      upstream.answerNext(
        afterInterim(json(429, { error: { message: "slow down", type: "rate_limit_error" } }, { "retry-after": "3" })),
      );
      const reply = await post();
      expect([reply.status, reply.headers["retry-after"]]).toEqual([429, "3"]);
    });

    it("every answer carries a request id of the proxy", async () => {
      const ids = [
        (await post()).headers["x-portico-request-id"],
        (await post({ "x-api-key": "wrong" })).headers["x-portico-request-id"],
      ];
      for (const id of ids) expect(id).toMatch(/^req_/);
      expect(new Set(ids).size).toBe(2);
    });
  });

  describe.each(SAME)("$caller passed through", ({ caller, upstream: protocol }) => {
    const { path, request } = CALLERS[caller];

    it("end-to-end headers pass upstream as they are", async () => {
      await using upstream = await startFakeUpstream();
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const headers = {
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "context-1m-2025-08-07,interleaved-thinking-2025-05-14",
        "openai-organization": "org-2",
        "idempotency-key": "once",
        "x-stainless-lang": "js",
        "user-agent": "a-client/1.2",
        accept: "application/json",
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "x-unknown": "1",
      };
      expect((await proxy.post(path, request(), headers)).status).toBe(200);
      expect((await upstream.request()).headers).toMatchObject({ ...headers, "content-type": "application/json" });
    });

    it("the query is forwarded as written, without credentials; a body is forwarded with any content", async () => {
      await using upstream = await startFakeUpstream();
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }], ownTokens: [AGENT_TOKEN] });
      const token = await proxy.token();
      const body = JSON.stringify(request(`${token} ${AGENT_TOKEN} whs_abc grant_abc`));
      const query = `?beta=true&a=%7E+~&grant_type=x&key=${AGENT_TOKEN}&empty=&my_grant_id=1`;
      const reply = await proxy.post(path + query, body, {
        "x-honest": "my-grant_id, prewhs_1, session_id=1, edit_mode agent_name",
      });
      expect(reply.status).toBe(200);
      const arrived = await upstream.request();
      expect(new URL(arrived.url, "http://x").search).toBe("?beta=true&a=%7E+~&empty=&my_grant_id=1");
      expect(arrived.headers["x-honest"]).toBe("my-grant_id, prewhs_1, session_id=1, edit_mode agent_name");
      expect(await arrived.text()).toBe(body);
    });

    it("end-to-end headers come back as they are; hop-by-hop ones and those that `connection` names don't", async () => {
      await using upstream = await startFakeUpstream();
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      const passing = {
        "request-id": "req_upstream",
        "x-request-id": "req_upstream_2",
        "openai-processing-ms": "12",
        "anthropic-ratelimit-tokens-remaining": "99",
        "x-ratelimit-limit-requests": "60",
        "cache-control": "no-store",
        "x-unknown": "1",
      };
      const hop = {
        connection: "close, x-only-for-you",
        "x-only-for-you": "1",
        "keep-alive": "timeout=77",
        "proxy-authenticate": "Basic",
      };
      upstream.answerNext(json(200, { ok: true }, { ...passing, ...hop }));
      const reply = await proxy.post(path, request());
      expect(reply.headers).toMatchObject(passing);
      expect(reply.headers["x-only-for-you"]).toBeUndefined();
      expect(reply.headers["proxy-authenticate"]).toBeUndefined();
      expect(reply.headers["keep-alive"] ?? "").not.toContain("77");
    });

    it("a repeated header stays repeated; it is left out if one of its values contains a secret", async () => {
      await using upstream = await startFakeUpstream();
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      upstream.answerNext(json(200, { ok: true }, { "x-several": ["1", "2"], "x-telling": ["1", PROVIDER_KEY, "2"] }));
      const reply = await proxy.post(path, request());
      expect(reply.headers["x-several"]).toBe("1, 2");
      expect(reply.headers["x-telling"]).toBeUndefined();
    });

    // A `Request` carries no `connection`.
    it.skipIf(host === "fetch")("what the caller's `connection` names does not go upstream", async () => {
      await using upstream = await startFakeUpstream();
      await using proxy = await startProxy({ host, providers: [{ protocol, upstream }] });
      await proxy.post(path, request(), { connection: "close, x-only-for-you", "x-only-for-you": "1" });
      expect((await upstream.request()).headers["x-only-for-you"]).toBeUndefined();
    });
  });
});
