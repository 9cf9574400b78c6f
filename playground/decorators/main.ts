// A host application that uses tsyringe: the app's ports are injected into its own classes.
import "reflect-metadata";
import { systemClock } from "@portico/adapters/clock/system";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { createApp, ports, portToken, Secret } from "@portico/core";
import { container, inject, singleton } from "tsyringe";
import { notebook } from "../notebook.ts";

interface Order {
  readonly item: string;
  readonly at: number;
}

/** Stores its records in the app's store, where the notebook stores its records, too. */
@singleton()
class Orders {
  readonly #orders: ports.Collection<Order>;
  readonly #clock: ports.Clock;

  constructor(@inject(portToken(ports.records)) records: ports.Records, @inject(portToken(ports.clock)) clock: ports.Clock) {
    this.#orders = records.collection<Order>({ name: "orders" });
    this.#clock = clock;
  }

  async place(id: string, item: string): Promise<Order> {
    return (await this.#orders.put(id, { item, at: this.#clock.now() }, "absent")).value;
  }
}

/** Gets the first class injected, as usual in tsyringe. */
@singleton()
class Shop {
  readonly #orders: Orders;

  constructor(@inject(Orders) orders: Orders) {
    this.#orders = orders;
  }

  async sell(item: string): Promise<string> {
    const order = await this.#orders.place("order-1", item);
    return `sold: ${order.item}`;
  }
}

await using app = await createApp(
  {
    name: "shop",
    adapters: [systemClock(), memoryRecords(), memorySecrets()],
    plugins: [notebook({ token: new Secret("a-token-for-this-story") })],
  },
  { container },
);
console.log(await container.resolve(Shop).sell("tea"));
const orders = app.port(ports.records).collection<Order>({ name: "orders" });
console.log(`in the app's store: ${(await orders.get("order-1"))?.value.item}`);
