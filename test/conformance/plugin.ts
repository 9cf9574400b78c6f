import { type App, type Contract, createApp, type Plugin, type Preset, type RouteContract } from "@portico/core";
import { toOpenAPI } from "@portico/core/openapi";
import * as v from "valibot";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";

/** Options of `pluginConformance`. */
export interface PluginConformanceOptions {
  /** Fills what the plugin needs; preset `testing` of `@portico/presets/testing` most of the time. */
  readonly extends?: Preset;
  /** Headers that let a caller in, by the `auth` names of the contract. Their values are the credential, and need eight characters. */
  readonly credentials?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** What stands in paths for their parameters; default: `x`. */
  readonly params?: Readonly<Record<string, string>>;
}

/** Sent in bodies that are refused: no answer may repeat it. */
const HIDDEN = "hidden-word-of-the-suite";
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const LOOSE = ["object", "loose_object", "object_with_rest"];

/**
 * What holds for every plugin, as vitest tests: guards refuse callers without the whole credential, refusals are told in the contract's own
 * envelope and repeats nothing, what comes in is parsed strictly, and streams end with their app. `make` is called once per test, and once more for
 * the contract.
 */
export function pluginConformance(
  name: string,
  make: () => Plugin,
  { extends: base, credentials = {}, params = {} }: PluginConformanceOptions = {},
): void {
  const contract = make().spec.contract as Contract;
  const routes = Object.entries(contract).map(([key, route]) => ({
    ...{ key, route, method: route.method },
    url: route.path.replaceAll(/:(\w+)/g, (_all, parameter: string) => encodeURIComponent(params[parameter] ?? "x")),
  }));
  const guarded = routes.filter(({ route }) => route.auth !== "open");
  const taking = routes.filter(({ route }) => takesJson(route));
  const streaming = routes.filter(({ route }) => route.success.kind === "events");

  describeSuite(`plugin: ${name}`, () => {
    let app: App;
    beforeEach(async () => {
      app = await createApp({ name, ...(base && { extends: base }), plugins: [make()] });
    });
    afterEach(() => app.close());

    const credential = ({ auth }: RouteContract) => credentials[auth] ?? {};
    const ask = async (route: RouteContract, url: string, init: RequestInit = {}) => {
      const request = new Request(`http://conformance.test${url}`, { method: route.method, ...init });
      return app.surface(route.surface).fetch(request);
    };
    /** A refusal: JSON of the contract's envelope, in which nothing stands that was sent. */
    const refused = async (answer: Response) => {
      expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
      const text = await answer.text();
      expect(() => JSON.parse(text)).not.toThrow();
      for (const sent of [HIDDEN, ...Object.values(credentials).flatMap(Object.values)]) expect(text).not.toContain(sent);
      return answer.status;
    };
    const json = (body: string): RequestInit => ({ body, headers: { "content-type": "application/json" } });
    const withCredential = (route: RouteContract, init: RequestInit = {}): RequestInit => ({
      ...init,
      headers: { ...(init.headers as Record<string, string>), ...credential(route) },
    });

    it("has routes, and the suite was given a credential for each way in", () => {
      expect(routes.length).toBeGreaterThan(0);
      expect(Object.keys(credentials).toSorted()).toEqual([...new Set(guarded.map(({ route }) => route.auth))].toSorted());
      const values = Object.values(credentials).flatMap(Object.values);
      expect(values.filter((value) => value.length < 8)).toEqual([]);
    });

    it("takes no option that it does not know", () => {
      const { spec, options } = make();
      expect(v.safeParse(spec.config, { ...(options as object), noSuchOption: HIDDEN }).success).toBe(false);
    });

    it("has a document that says what each route does", () => {
      for (const surface of new Set(routes.map(({ route }) => route.surface))) {
        const document = toOpenAPI({ title: name, version: "1.0.0" }, { [name]: contract }, { surface });
        const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
        expect(operations).toHaveLength(routes.filter(({ route }) => route.surface === surface).length);
        for (const { summary } of operations) expect(summary).toMatch(/\w/);
      }
    });

    it("has strict schemas for input: an unknown key is refused, not ignored", () => {
      const loose = routes.flatMap(({ key, route }) =>
        (["params", "query", "body"] as const)
          .filter((part) => LOOSE.includes(route[part]?.type ?? ""))
          .map((part) => [key, part]),
      );
      expect(loose).toEqual([]);
    });

    it("closes, twice as once, and starts again beside another of its kind", async () => {
      const second = await createApp({ name, ...(base && { extends: base }), plugins: [make()] });
      await second.close();
      await second.close();
    });

    it("answers an undeclared path or method in an envelope of its surface", async () => {
      const { route, url } = routes[0]!;
      expect(await refused(await ask(route, "/no-such-path-of-the-suite"))).toBe(404);
      const others = METHODS.filter((method) => !routes.some((each) => each.url === url && each.method === method));
      for (const method of others) {
        const answer = await ask(route, url, withCredential(route, { method }));
        expect(answer.headers.get("allow")).toContain(route.method);
        expect(await refused(answer)).toBe(405);
      }
    });

    describe.runIf(guarded.length > 0).each(guarded)("$method $url", ({ route, url }) => {
      const nearly = (cut: (value: string) => string) =>
        Object.fromEntries(Object.entries(credential(route)).map(([header, value]) => [header, cut(value)]));

      it.each([
        ["nothing", () => ({})],
        ["an empty credential", () => nearly(() => "")],
        ["one that lacks its end", () => nearly((value) => value.slice(0, -1))],
        ["one with something behind it", () => nearly((value) => `${value}x`)],
      ])("lets nobody in with %s, whatever else is sent", async (_what, headers) => {
        const answer = await ask(route, url, {
          headers: { ...headers(), ...(takesJson(route) && { "content-type": "application/json" }) },
          ...(takesJson(route) && { body: `{"${HIDDEN}":` }),
        });
        const status = await refused(answer);
        expect([401, 403]).toContain(status);
        expect(Object.values(route.errors ?? {}).map((error) => error.status)).toContain(status);
      });

      it("admits a caller with the credential", async () => {
        const body = takesJson(route) ? json(`{"${HIDDEN}":`) : {};
        const answer = await ask(route, url, withCredential(route, body));
        await answer.body?.cancel();
        expect([401, 403]).not.toContain(answer.status);
      });
    });

    describe.runIf(taking.length > 0).each(taking)("the body of $method $url", ({ route, url }) => {
      it.each([
        ["another media type", 415, { body: HIDDEN, headers: { "content-type": "text/plain" } }],
        ["cut JSON", 400, json(`{"${HIDDEN}":`)],
        ["a key that nobody knows", 400, json(`{"no-such-key":"${HIDDEN}"}`)],
        ["more bytes than the route takes", 413, json(`"${HIDDEN}${" ".repeat((route.bodyLimit ?? MIB) + 1)}"`)],
      ])("is refused: %s", async (_what, status, init) => {
        expect(await refused(await ask(route, url, withCredential(route, init)))).toBe(status);
      });
    });

    describe.runIf(streaming.length > 0).each(streaming)("the events of $method $url", ({ route, url }) => {
      it("begin at once, and end when the service stops", async () => {
        const answer = await ask(route, url, withCredential(route));
        expect(answer.headers.get("content-type")).toMatch(/^text\/event-stream/);
        const read = answer.text();
        await app.close();
        await read;
      });

      it("end when their reader leaves", async () => {
        const leaving = new AbortController();
        const answer = await ask(route, url, withCredential(route, { signal: leaving.signal }));
        await answer.body!.cancel();
        leaving.abort();
        await app.close();
      });
    });
  });
}

const MIB = 1024 * 1024;

function takesJson({ body, bodyAs = "json", accepts, success }: RouteContract): boolean {
  return body !== undefined && bodyAs === "json" && accepts === undefined && success.kind !== "exchange";
}
