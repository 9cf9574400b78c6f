// Nothing here runs: `npm run types` compiles it, and each line that must not compile says so.
import { type ChannelHandlers, defineChannel, openChannel, type ports, type Scope } from "@portico/core";
import * as v from "valibot";

const contract = defineChannel({
  surface: "agent",
  path: "/live/",
  summary: "",
  hello: v.object({ token: v.string() }),
  receives: { say: v.object({ text: v.string() }), count: v.pipe(v.string(), v.toNumber()) },
  sends: { heard: v.object({ text: v.string() }), stamp: v.pipe(v.string(), v.toDate()) },
});

declare const given: { readonly realtime: ports.Realtime; readonly telemetry: ports.Telemetry };
declare const scope: Scope;

interface Who {
  readonly userId: string;
}
const good: ChannelHandlers<typeof contract, Who> = {
  admit: ({ token }) => ({ userId: token }),
  receive: {
    say: ({ who }, { text }) => void [who.userId, text],
    count: (_from, count) => void count.toFixed(),
  },
};
const channel = openChannel(given, contract, good, scope);

channel.send("socket", channel.say.heard({ text: "hi" }));
// What is sent is what goes over the wire, before any transformation.
channel.send("socket", channel.say.stamp("2030-01-01"));
channel.send("socket", { event: "heard", data: { text: "hi" } });

// @ts-expect-error the contract does not declare this event
channel.say.seen({ text: "hi" });

// @ts-expect-error the text is missing
channel.say.heard({});

// @ts-expect-error a stamp travels as a text
channel.say.stamp(new Date());

// @ts-expect-error the payload of another event
channel.send("socket", { event: "heard", data: "2030-01-01" });

// @ts-expect-error one event has no receiver
openChannel(given, contract, { ...good, receive: { say: good.receive.say } }, scope);

// @ts-expect-error a receiver has no event
openChannel(given, contract, { ...good, receive: { ...good.receive, shout() {} } }, scope);

// @ts-expect-error a channel without `admit` admits no client
openChannel(given, contract, { receive: good.receive }, scope);

// @ts-expect-error the text is no number
export const wrongPayload: typeof good.receive.say = (_from, data: { readonly text: number }) => void data;

export const wrongHello: typeof good.admit = (hello) => {
  // @ts-expect-error the hello has a token only
  return { userId: hello.name };
};

export const wrongWho: typeof good.receive.say = ({ who }) => {
  // @ts-expect-error admit answers a user id
  who.name;
};

export const wrongAdmit: ChannelHandlers<typeof contract, Who> = {
  ...good,
  // @ts-expect-error admit must answer who the receivers expect
  admit: () => ({ name: "ada" }),
};

// @ts-expect-error a channel's path ends with a slash
export const wrongPath = defineChannel({ ...contract, path: "/live" });

// @ts-expect-error bad payloads are logged: telemetry is needed
openChannel({ realtime: given.realtime }, contract, good, scope);
