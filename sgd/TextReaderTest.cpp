// SPDX-License-Identifier: Apache-2.0
// Tests of the readers: values, ranges of bytes, and lines that are not valid.
#include "sgd/TextReader.h"

#include "runtime/Error.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>

namespace nearbank::sgd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TextReaderTest : public ::testing::Test {
protected:
  std::string write(const std::string &text) {
    std::ofstream(path_, std::ios::binary) << text;
    return path_;
  }
  void TearDown() override { std::remove(path_.c_str()); }

private:
  std::string path_ = ::testing::TempDir() + "nearbank-rows-" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".txt";
};

std::string errorOf(const std::string &path, ParsedRows (*read)(const std::string &, const ReadOptions &)) {
  try {
    read(path, {});
  } catch (const UserError &error) {
    return error.report().text();
  }
  return "no error";
}

TEST_F(TextReaderTest, ReadsLibSvmWithCommentsBlanksAndCarriageReturns) {
  ParsedRows rows = readLibSvm(write("+1 1:1 3:0.5 # good\n\n# nothing\n-1 2:2e-1\r\n0\n"), {});
  EXPECT_THAT(rows.labels, ElementsAre(1, -1, 0));
  EXPECT_THAT(rows.offsets, ElementsAre(0, 2, 3, 3));
  EXPECT_THAT(rows.indices, ElementsAre(0, 2, 1));
  EXPECT_THAT(rows.values, ElementsAre(1, 0.5, 0.2));
  EXPECT_EQ(rows.numFeatures, 3);
}

TEST_F(TextReaderTest, OnesNeedNoValuesAndZerosNoEntries) {
  ParsedRows rows = readLibSvm(write("1 1:1 2:0 5:1\n"), {});
  EXPECT_TRUE(rows.values.empty());
  EXPECT_THAT(rows.indices, ElementsAre(0, 4));
}

TEST_F(TextReaderTest, ShowsBytesOfOtherFilesAsText) {
  EXPECT_THAT(errorOf(write("\xff\x01z 1:1\n"), readLibSvm), HasSubstr("actual:   '\\xff\\x01z'\n"));
  EXPECT_THAT(errorOf(write(std::string(50, 'y') + "\n"), readLibSvm),
              HasSubstr("actual:   '" + std::string(40, 'y') + "...'\n"));
}

TEST_F(TextReaderTest, NamesLineAndColumnOfABadLine) {
  std::string path = write("1 1:1\n-1 3:1 x2\n");
  EXPECT_EQ(errorOf(path, readLibSvm), "error[NB0704]: a line of the data file is not valid\n"
                                       "  where:    " +
                                           path +
                                           ":2:8\n"
                                           "  expected: index:value\n"
                                           "  actual:   'x2'\n"
                                           "  fix:      mend the line, or leave out bad lines with "
                                           "--on-bad-line=skip\n"
                                           "  more:     nearbank explain NB0704");
}

TEST_F(TextReaderTest, RefusesBadIndicesAndNumbers) {
  EXPECT_THAT(errorOf(write("1 0:1\n"), readLibSvm), HasSubstr("an index from 1"));
  EXPECT_THAT(errorOf(write("1 3:1 2:1\n"), readLibSvm), HasSubstr("an index above 3"));
  EXPECT_THAT(errorOf(write("1 3:nan\n"), readLibSvm), HasSubstr("a finite number"));
  EXPECT_THAT(errorOf(write("one 3:1\n"), readLibSvm), HasSubstr("a label"));
  EXPECT_THAT(errorOf("/nowhere/rows", readLibSvm), HasSubstr("error[NB0703]"));
}

TEST_F(TextReaderTest, SkipsBadLinesAndCountsThem) {
  ReadOptions options;
  options.skipsBadLines = true;
  ParsedRows rows = readLibSvm(write("1 1:0.5\n1 2:0.5 x\n-1 3:0.5\nbad\n"), options);
  EXPECT_THAT(rows.labels, ElementsAre(1, -1));
  EXPECT_THAT(rows.indices, ElementsAre(0, 2));
  EXPECT_EQ(rows.values.size(), 2u);
  EXPECT_EQ(rows.numBadLines, 2);
}

TEST_F(TextReaderTest, RangesOfBytesPartitionTheLines) {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += std::to_string(i) + " 1:" + std::to_string(i % 7 + 2) + "\n";
  std::string path = write(text);
  for (int64_t parts : {2, 3, 7}) {
    std::vector<double> labels;
    int64_t size = static_cast<int64_t>(text.size());
    for (int64_t part = 0; part < parts; ++part) {
      ReadOptions options;
      options.beginByte = size * part / parts;
      options.endByte = size * (part + 1) / parts;
      ParsedRows rows = readLibSvm(path, options);
      labels.insert(labels.end(), rows.labels.begin(), rows.labels.end());
    }
    ASSERT_EQ(labels.size(), 100u) << parts;
    for (int i = 0; i < 100; ++i)
      EXPECT_EQ(labels[i], i);
  }
}

TEST_F(TextReaderTest, ReadsCriteoWithEmptyFields) {
  std::string row = "1";
  for (int i = 0; i < 13; ++i)
    row += i == 3 ? "\t" : "\t" + std::to_string(i * 11);
  for (int i = 0; i < 26; ++i)
    row += i == 5 ? "\t" : "\t68fd1e64";
  ReadOptions options;
  options.hashBits = 16;
  ParsedRows rows = readCriteo(write(row + "\n0" + row.substr(1) + "\n"), options);
  EXPECT_THAT(rows.labels, ElementsAre(1, 0));
  EXPECT_THAT(rows.offsets, ElementsAre(0, 39, 78));
  EXPECT_EQ(rows.numFeatures, 65536);
  for (uint32_t index : rows.indices)
    EXPECT_LT(index, 65536u);
  EXPECT_NE(rows.indices[20], rows.indices[21]) << "the same text in two fields is two features";
}

TEST_F(TextReaderTest, RefusesCriteoLinesOfWrongShape) {
  EXPECT_THAT(errorOf(write("1\t2\t3\n"), readCriteo), HasSubstr("40 fields between tabs"));
  std::string fields(38, '\t');
  EXPECT_THAT(errorOf(write("7\t" + fields + "\n"), readCriteo), HasSubstr("a label of 0 or 1"));
  EXPECT_THAT(errorOf(write("1\t" + fields + "xyz\n"), readCriteo), HasSubstr("hexadecimal"));
}

} // namespace
} // namespace nearbank::sgd
