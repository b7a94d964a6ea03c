'use strict';
// An append-only file of transactions, one a line: eight hex digits of a checksum, a blank, the JSON text. A transaction counts
// when its whole line is on disk. Transactions that wait at the same time share one write and one fsync.

const fs = require('node:fs');
const crypto = require('node:crypto');
const { defect } = require('./defects');
const { StoreDown } = require('./errors');

const MAX_BATCH = 256;
const sum = (text) => crypto.createHash('sha256').update(text).digest('hex').slice(0, 8);
const lineOf = (transaction) => {
  const text = JSON.stringify(transaction);
  return `${sum(text)} ${text}\n`;
};

class Journal {
  constructor(file, apply) {
    this.file = file;
    this.apply = apply;
    this.waiting = [];
    this.pumping = false;
    this.records = 0;
    this.fd = null;
  }

  // Reads all transactions and applies them. A last line without an end is a write that a crash cut off: nobody was told that it
  // succeeded, so it is dropped. A whole line that is wrong means a damaged file, which is left as it is.
  open() {
    const fd = fs.openSync(this.file, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600);
    try {
      const data = fs.readFileSync(fd);
      let start = 0;
      this.records = 0;
      while (start < data.length) {
        const end = data.indexOf(10, start);
        if (end < 0) break;
        const line = data.toString('utf8', start, end);
        const text = line.slice(9);
        if (line[8] !== ' ' || sum(text) !== line.slice(0, 8)) throw new Error(`the record at byte ${start} is damaged`);
        this.apply(JSON.parse(text), true);
        this.records += 1;
        start = end + 1;
      }
      if (start < data.length) {
        console.log(`WARN dropped ${data.length - start} bytes of an unfinished write`);
        fs.ftruncateSync(fd, start);
        fs.fsyncSync(fd);
      }
      this.size = start;
      this.fd = fd;
    } catch (error) {
      fs.closeSync(fd);
      throw error;
    }
  }

  // Writes the given transactions to a new file, which then takes the place of the old one.
  rewrite(transactions) {
    const draft = `${this.file}.new`;
    const fd = fs.openSync(draft, 'w', 0o600);
    let size = 0;
    let records = 0;
    for (const transaction of transactions) {
      size += fs.writeSync(fd, lineOf(transaction));
      records += 1;
    }
    fs.fsyncSync(fd);
    fs.renameSync(draft, this.file);
    const folder = fs.openSync(this.file.slice(0, this.file.lastIndexOf('/') + 1) || '.', 'r');
    fs.fsyncSync(folder);
    fs.closeSync(folder);
    fs.closeSync(this.fd);
    this.fd = fs.openSync(this.file, 'r+');
    fs.closeSync(fd);
    this.size = size;
    this.records = records;
  }

  // Resolves with what `apply` returns, when the transaction is on disk.
  append(transaction) {
    if (defect('answer-before-disk')) {
      const result = this.apply(transaction);
      setTimeout(() => { this.waiting.push({ transaction, done: true, resolve() {}, reject() {} }); this.pump(); }, 120);
      return Promise.resolve(result);
    }
    return new Promise((resolve, reject) => {
      this.waiting.push({ transaction, resolve, reject });
      this.pump();
    });
  }

  async pump() {
    if (this.pumping) return;
    this.pumping = true;
    await new Promise(setImmediate); // those who come in the same moment share the first write
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, MAX_BATCH);
      try {
        await this.write(batch.map((item) => lineOf(item.transaction)).join(''));
      } catch (error) {
        console.log(`ERROR the journal cannot be written: ${error.code || error.message}`);
        for (const item of batch) item.reject(new StoreDown('write'));
        continue;
      }
      this.records += batch.length;
      for (const item of batch) {
        try {
          item.resolve(item.done ? true : this.apply(item.transaction));
        } catch (error) {
          item.reject(error);
        }
      }
    }
    this.pumping = false;
  }

  async write(text) {
    if (this.fd === null) throw new StoreDown('closed');
    const data = Buffer.from(text, 'utf8');
    try {
      let done = 0;
      while (done < data.length) {
        done += await new Promise((resolve, reject) => {
          fs.write(this.fd, data, done, data.length - done, this.size + done, (error, count) => (error ? reject(error) : resolve(count)));
        });
      }
      await new Promise((resolve, reject) => fs.fsync(this.fd, (error) => (error ? reject(error) : resolve())));
      this.size += data.length;
    } catch (error) {
      try { fs.ftruncateSync(this.fd, this.size); } catch { /* the next open drops it, as its end is torn */ }
      throw error;
    }
  }

  async close() {
    while (this.pumping) await new Promise((resolve) => setTimeout(resolve, 5));
    if (this.fd !== null) fs.closeSync(this.fd);
    this.fd = null;
  }
}

module.exports = { Journal };
