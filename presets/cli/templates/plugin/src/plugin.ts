import { EventEmitter, on } from "node:events";
import { bearerToken, definePlugin, ports } from "@portico/core";
import { sampleNameConfig } from "./config.ts";
import { type Item, sampleNameContract, sampleNameErrors } from "./contract.ts";

export { sampleNameConfig };

export const sampleNamePlugin = definePlugin({
  name: "sample-name",
  config: sampleNameConfig,
  // `guards` and `setup` receive the ports that are named here.
  needs: { records: ports.records, secrets: ports.secrets, clock: ports.clock },
  contract: sampleNameContract,

  guards({ secrets }, { token }) {
    const digest = secrets.digest(token.reveal());
    return {
      holder(head) {
        const presented = bearerToken(head);
        if (presented === undefined || !secrets.matches(presented, digest)) throw sampleNameErrors.unauthorized();
      },
    };
  },

  setup({ records, clock }, { listed }) {
    const items = records.collection<Item>({ name: "sample-name" });
    const news = new EventEmitter<{ added: [Item] }>().setMaxListeners(0);
    return {
      async add({ body, fail }) {
        const added = { ...body, addedAt: new Date(clock.now()).toISOString() };
        try {
          await items.put(body.name, added, "absent");
        } catch (cause) {
          // Translate a port's errors at the place that knows their meaning.
          if (cause instanceof ports.RecordConflict) throw fail.item_exists(undefined, {}, cause);
          throw cause;
        }
        news.emit("added", added);
        return added;
      },

      async find({ params, fail }) {
        const found = await items.get(params.name);
        if (!found) throw fail.item_unknown();
        return found.value;
      },

      async list() {
        const page = await items.query({ limit: listed });
        return { items: page.items.map(({ value }) => value) };
      },

      watch({ say, signal }) {
        // Subscribes before the head of the response is sent, so that a caller who received the head misses no event.
        const added = on(news, "added", { signal }) as AsyncIterable<[Item]>;
        return (async function* () {
          for await (const [each] of added) yield say.added(each);
        })();
      },
    };
  },
});
