import { tokenIdentity } from "@portico/adapters/identity/tokens";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import {
  type Access,
  bearerToken,
  createApp,
  defineAccess,
  defineErrors,
  instanceAccess,
  openAccess,
  ports,
  scraperAccess,
  Secret,
} from "@portico/core";
import { apiDocs } from "@portico/operator/api-docs";
import { metrics } from "@portico/operator/metrics";
import { describe, expect, it } from "vitest";

const measured = { contentType: "text/plain; version=0.0.4", text: async () => "drinks_total 3\n" };
const refused = defineErrors({ closed: { status: 403, message: "Closed" } });

/** An access of a third party: its own scheme, by a port that it needs. */
const knock = defineAccess({
  auth: "knock",
  needs: { secrets: ports.secrets },
  guard: ({ secrets }) => {
    const digest = secrets.digest("twice");
    return (head) => {
      if (!secrets.matches(bearerToken(head) ?? "", digest)) throw refused.closed();
    };
  },
  security: { type: "http", scheme: "bearer", description: "Knock" },
});

async function openBar(access: Access, ...more: readonly Access[]) {
  const tokens = [{ token: new Secret("a-token"), role: "service" as const }];
  const plugins = [access, ...more].flatMap((each, index) => [
    metrics({ surface: `bar${index}`, access: each, measured }),
    apiDocs({ surface: `bar${index}`, access: each }),
  ]);
  const app = await createApp({ name: "bar", adapters: [memorySecrets(), tokenIdentity({ tokens })], plugins });
  const ask = async (path: string, headers: Record<string, string> = {}, surface = "bar0") => {
    const answer = await app.surface(surface).fetch(new Request(`http://bar${path}`, { headers }));
    return { status: answer.status, body: await answer.text() };
  };
  return { ask, [Symbol.asyncDispose]: () => app.close() };
}

const header = { "x-agent-service-token": "a-token" };
const bearer = { authorization: "Bearer a-token" };

describe("a page on any surface lets in those whom its access names", () => {
  it.each<[string, Access, readonly [Record<string, string>, number][]]>([
    [
      "instanceAccess",
      instanceAccess,
      [
        [header, 200],
        [bearer, 401],
        [{}, 401],
        [{ "x-agent-service-token": "another" }, 401],
      ],
    ],
    [
      "scraperAccess",
      scraperAccess,
      [
        [header, 200],
        [bearer, 200],
        [{}, 401],
        [{ authorization: "Bearer another" }, 401],
        // What is sent as a bearer token counts.
        [{ ...header, authorization: "Bearer another" }, 401],
      ],
    ],
    ["openAccess", openAccess, [[{}, 200]]],
    [
      "one of a third party",
      knock,
      [
        [{ authorization: "Bearer twice" }, 200],
        [header, 403],
      ],
    ],
  ])("%s", async (_name, access, cases) => {
    await using bar = await openBar(access);
    for (const [headers, status] of cases) {
      expect((await bar.ask("/metrics", headers)).status, JSON.stringify(headers)).toBe(status);
      expect((await bar.ask("/openapi.json", headers)).status, JSON.stringify(headers)).toBe(status);
    }
  });

  it("and answers in the words of what measures", async () => {
    await using bar = await openBar(openAccess);
    expect(await bar.ask("/metrics")).toEqual({ status: 200, body: "drinks_total 3\n" });
  });

  it("the documents describe the credentials of their own surface, as it declares them", async () => {
    await using bar = await openBar(knock, openAccess, { ...openAccess, auth: "knock", security: header0 });
    const schemes = async (surface: string, headers = {}) =>
      JSON.parse((await bar.ask("/openapi.json", headers, surface)).body).components.securitySchemes;
    expect(await schemes("bar0", { authorization: "Bearer twice" })).toEqual({ knock: knock.security });
    expect(await schemes("bar1")).toEqual({});
    expect(await schemes("bar2")).toEqual({ knock: header0 });
  });
});

const header0 = { type: "apiKey", in: "header", name: "X-Knock" } as const;

it("a page without an access stops the start with a sentence", async () => {
  const page = metrics({ surface: "bar", access: openAccess, measured });
  const wrong = { ...page, options: { surface: "bar", measured } };
  await expect(createApp({ name: "bar", plugins: [wrong] })).rejects.toThrow(
    /Plugin "metrics-bar" was given options that it does not take:\n {2}access/,
  );
});

it("a port that the access of a page needs and no adapter fills stops the start with a sentence", async () => {
  const plugins = [metrics({ surface: "bar", access: instanceAccess, measured })];
  await expect(createApp({ name: "bar", plugins })).rejects.toThrow(
    'port "identity" (for plugin "metrics-bar"): add tokenIdentity({ tokens }) from @portico/adapters/identity/tokens',
  );
});
