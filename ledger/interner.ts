/** Names to small ids, given out once each; the owner is told of every new one so that it is stored before it is used. */
export class Interner {
  private readonly ids = new Map<string, number>();
  private next: number;

  constructor(known: readonly (readonly [id: number, name: string])[] = [], next?: number) {
    let highest = 0;
    for (const [id, name] of known) {
      this.ids.set(name, id);
      if (id > highest) highest = id;
    }
    this.next = next ?? highest + 1;
  }

  get size(): number {
    return this.ids.size;
  }

  /** The id of `name`; `onNew` is called with it the first time. */
  id(name: string, onNew: (id: number) => void): number {
    const known = this.ids.get(name);
    if (known !== undefined) return known;
    const id = this.next++;
    this.ids.set(name, id);
    onNew(id);
    return id;
  }

  /** The name may be given another id from now on. */
  forget(name: string): void {
    this.ids.delete(name);
  }
}
