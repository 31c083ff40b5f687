// SPDX-License-Identifier: Apache-2.0
// A prepared statement of SQLite with columns and parameters in order.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>

namespace nearbank::profile {

/// One prepared statement. Columns and parameters are taken in order.
class Statement {
public:
  Statement(sqlite3 *database, const std::string &text) : database_(database) {
    status_ = sqlite3_prepare_v2(database, text.c_str(), -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement &) = delete;
  Statement &operator=(const Statement &) = delete;

  Statement &bind(const std::string &value) {
    sqlite3_bind_text(statement_, ++parameter_, value.c_str(), -1, SQLITE_TRANSIENT);
    return *this;
  }
  Statement &bind(int64_t value) {
    sqlite3_bind_int64(statement_, ++parameter_, value);
    return *this;
  }
  Statement &bind(double value) {
    sqlite3_bind_double(statement_, ++parameter_, value);
    return *this;
  }
  /// SQLITE_ROW, SQLITE_DONE or an error.
  int step() {
    column_ = 0;
    return status_ == SQLITE_OK ? sqlite3_step(statement_) : status_;
  }
  int64_t integer() { return sqlite3_column_int64(statement_, column_++); }
  double real() { return sqlite3_column_double(statement_, column_++); }
  std::string text() {
    const unsigned char *value = sqlite3_column_text(statement_, column_++);
    return value ? reinterpret_cast<const char *>(value) : "";
  }

private:
  sqlite3 *database_;
  sqlite3_stmt *statement_ = nullptr;
  int status_ = SQLITE_OK, parameter_ = 0, column_ = 0;
};

} // namespace nearbank::profile
